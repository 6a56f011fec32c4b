// SPDX-License-Identifier: Apache-2.0
// How a configuration differs from the one in force, and what of it a running daemon can take.
// Values and pure functions; any thread.
#pragma once

#include <vector>

#include "service/config.hpp"
#include "service/setting_values.hpp"

namespace vfmgr {

// By key.
[[nodiscard]] std::vector<KeyChange> changes_between(Config const& before, Config const& after);

// Returns `wanted` with the running values of all keys that only a start applies.
[[nodiscard]] Config applicable(Config const& running, Config wanted);

}  // namespace vfmgr
