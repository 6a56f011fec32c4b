// SPDX-License-Identifier: Apache-2.0
// Logs errors with all that they say. Any thread; no state.
#pragma once

#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

// Logs each violation with its place: file and line, or the setting.
void log_violations(Error const& error);
// With its causes, its remedy and its violations.
void log_failure(std::string_view message, Error const& error);
// Logs why a daemon can't start, or go on. Returns its exit status.
[[nodiscard]] int failed(Error const& error);

}  // namespace vfmgr
