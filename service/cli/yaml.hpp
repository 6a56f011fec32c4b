// SPDX-License-Identifier: Apache-2.0
// Writes the API's JSON as YAML, the same document. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

// Members stay in their order. Strings that some YAML reader takes for a number, a truth value, a
// date or null are quoted.
[[nodiscard]] Result<std::string> as_yaml(std::string_view json);

}  // namespace vfmgr
