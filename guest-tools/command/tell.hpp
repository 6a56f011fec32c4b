// SPDX-License-Identifier: Apache-2.0
// What the commands say on the terminal: answers on standard output, failures on the other. Any
// thread; a line is never mixed with another's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::guest::command {

// Returns what vf-guest leaves with.
int told(Error const& error);
void tell(std::string const& line);
// On standard error: what an answer that comes all the same lacks.
void warn(std::string const& line);
// Indented. What is not UTF-8, a netdev's name, is replaced.
void print_json(nlohmann::json const& document);
// One that is JSON already.
void print_document(std::string_view json);
// As it is, but that nothing in it steers the terminal; on standard output, and on the other.
void print_text(std::string_view text);
void warn_text(std::string_view text);
// What vf-guest leaves with: an answer that did not get there is none.
[[nodiscard]] int ended_with(int status);

}  // namespace vfmgr::guest::command
