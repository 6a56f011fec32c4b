// SPDX-License-Identifier: Apache-2.0
// How a configuration differs from the one in force, and what of it a running daemon can take.
// Values and pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "service/config.hpp"

namespace vfmgr {

struct KeyChange {
    std::string key;     // "limits.changes_per_second"
    std::string before;  // empty: it was not set
    std::string after;
    bool operator==(KeyChange const&) const = default;
};

// By key.
[[nodiscard]] std::vector<KeyChange> changes_between(Config const& before, Config const& after);

// Returns `wanted` with the running values of all keys that only a start applies.
[[nodiscard]] Config applicable(Config const& running, Config wanted);

}  // namespace vfmgr
