// SPDX-License-Identifier: Apache-2.0
// Runs a program that only reads, for what no file tells. Blocks until it has ended or the deadline
// passed; any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks {

// In the C locale, with nothing on standard input; at the deadline it is killed, and left behind
// where that does not end it within 2 s. What it says beyond a megabyte is dropped.
[[nodiscard]] CommandFact run_command(std::vector<std::string> const& words, Deadline deadline);

}  // namespace vfmgr::checks
