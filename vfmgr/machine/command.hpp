// SPDX-License-Identifier: Apache-2.0
// Runs a program that only reads, for what no file shows. Blocks until the program ends or the
// deadline passes; any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

// Runs in the C locale, with nothing on standard input. At the deadline the program is killed, and
// left behind if that does not end it within 2 s. Output beyond a megabyte is dropped.
[[nodiscard]] CommandFact run_command(std::vector<std::string> const& words, Deadline deadline);
// "ofed_info -s": no word has a blank in it.
[[nodiscard]] CommandFact run_line(std::string const& line, Deadline deadline);

}  // namespace vfmgr::checks
