// SPDX-License-Identifier: Apache-2.0
// Runs another program of the VM and waits for it, not longer than a deadline. Any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::guest {

// `arguments` begins with the program, looked for in PATH. An Error when it can't be run, ends with
// another status than 0, or has to be killed at the deadline.
[[nodiscard]] Result<void> run_program(std::vector<std::string> arguments, Deadline deadline);

}  // namespace vfmgr::guest
