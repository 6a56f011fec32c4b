// SPDX-License-Identifier: Apache-2.0
// What the commands say on the terminal: answers on standard output, failures on the other. Any
// thread; a line is never mixed with another's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::guest::command {

// Returns what vf-guest leaves with.
int told(Error const& error);
void tell(std::string const& line);
// On standard error: what an answer that comes all the same lacks.
void warn(std::string const& line);
// Indented. What is not UTF-8, a netdev's name, is replaced.
void print_json(nlohmann::json const& document);

}  // namespace vfmgr::guest::command
