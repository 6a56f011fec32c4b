// SPDX-License-Identifier: Apache-2.0
// Checks that a change is based on the current revision: at admission, and again under the claim,
// because another change may be ahead in the queue. Free functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "api/types/problem.hpp"
#include "vfmgr/plan/desired_state.hpp"

namespace vfmgr {

// A PF or link without a spec is at revision 0.
template <class Key, class Value>
[[nodiscard]] std::uint64_t revision_of(std::map<Key, Value> const& all, Key const& key) {
    auto const now = all.find(key);
    return now == all.end() ? 0 : now->second.revision;
}
// Without `if_match` every revision passes.
[[nodiscard]] Result<void> check_revision(DesiredState const& desired, PciAddress const& pf,
                                          std::optional<std::uint64_t> if_match);
[[nodiscard]] Result<void> check_revision(DesiredState const& desired, std::string const& link,
                                          std::optional<std::uint64_t> if_match);

}  // namespace vfmgr
