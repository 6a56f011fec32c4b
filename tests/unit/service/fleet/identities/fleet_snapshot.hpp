// SPDX-License-Identifier: Apache-2.0
// Snapshots of etcd that tests write, and transactions on them as etcd performs them. For tests.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "service/fleet/identities/moves.hpp"

namespace vfmgr::fleet::test {

inline Identity mac(char const* text) {
    return {"", MacAddress::parse(text).value()};
}
inline Identity guid(char const* text) {
    return {"", Guid::parse(text).value()};
}
inline Identity address(char const* text) {
    return {"train", IpAddress::parse(text).value()};
}

inline void add_block(Snapshot& fleet, Identity const& first, Identity const& last,
                      std::string const& host) {
    fleet.blocks.push_back({{first, last, host, "key of " + host, {}}, ++fleet.revision});
}

inline bool holds(Snapshot const& fleet, KeyCompare const& compare) {
    std::optional<std::uint64_t> revision;
    for (auto const& kept : fleet.claims)
        if (claim_key(kept.claim.identity) == compare.key) revision = kept.revision;
    for (auto const& kept : fleet.blocks)
        if (block_key(kept.block.first) == compare.key) revision = kept.revision;
    return revision == compare.mod_revision;
}

// Returns false, and changes nothing, if a comparison fails.
inline bool commit(Snapshot& fleet, Transition const& transition) {
    if (!std::ranges::all_of(transition.compares,
                             [&](auto const& compare) { return holds(fleet, compare); }))
        return false;
    ++fleet.revision;
    for (auto const& [key, claim] : transition.writes) {
        std::erase_if(fleet.claims,
                      [&](auto const& kept) { return claim_key(kept.claim.identity) == key; });
        if (claim) fleet.claims.push_back({*claim, fleet.revision});
    }
    return true;
}

}  // namespace vfmgr::fleet::test
