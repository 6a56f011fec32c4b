// SPDX-License-Identifier: Apache-2.0
// Runs another program of the VM and waits for it, no longer than a deadline. Any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::guest {

// `arguments` begins with the program, searched for in PATH. Fails when it can't be run, exits with
// another status than 0, or has to be killed at the deadline.
[[nodiscard]] Result<void> run_program(std::vector<std::string> const& arguments,
                                       Deadline deadline);

}  // namespace vfmgr::guest
