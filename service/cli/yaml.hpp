// SPDX-License-Identifier: Apache-2.0
// The API's JSON as YAML, the same document. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

// Members stay in their order. Strings that some YAML reader takes for a number, a truth value, a
// date or null are quoted. Noncharacters of Unicode, which no name needs, become U+FFFD.
[[nodiscard]] Result<std::string> as_yaml(std::string_view json);

// Reads what as_yaml() writes, JSON, and files that people write. Text without quotes is a number,
// true, false or null if it is in JSON; all else is a string: "on" and 0000:01:00.0 are text.
// Refuses members that are there twice, anchors, tags, and more than one document.
[[nodiscard]] Result<std::string> json_of_yaml(std::string_view yaml);

}  // namespace vfmgr
