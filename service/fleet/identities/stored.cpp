// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/stored.hpp"

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

template <class T>
std::optional<Identity> parsed(std::string_view text, std::string network = {}) {
    auto value = T::parse(text);
    if (!value) return std::nullopt;
    return Identity{std::move(network), *value};
}

std::optional<Identity> of_kind(IdentityKind kind, std::string const& network,
                                std::string_view text) {
    if (kind == IdentityKind::mac) return parsed<MacAddress>(text);
    if (kind == IdentityKind::guid) return parsed<Guid>(text);
    return parsed<IpAddress>(text, network);
}

std::optional<Block> block_of_record(std::string_view key, BlockRecord const& record) {
    auto const first = identity_in(key);
    if (!first) return std::nullopt;
    auto const last = of_kind(kind_of(*first), first->network, record.last);
    if (!last || !comparable(*first, *last)) return std::nullopt;
    return Block{*first, *last, record.host, record.public_key, record.at};
}

ClaimRecord record_of(Claim const& claim, std::string const& act) {
    return {claim.state, claim.host, claim.public_key, claim.from, claim.from_public_key,
            claim.vm,    act,        claim.at};
}

IdentityRanges ranges_of(Identities const& fleet, BlockRequest const& request) {
    if (request.kind == IdentityKind::mac) return mac_ranges(fleet);
    if (request.kind == IdentityKind::guid) return guid_ranges(fleet);
    return address_ranges(fleet, request.network);
}

}  // namespace

std::optional<Identity> identity_in(std::string_view key) {
    auto const kind = take_until(key, '/');
    if (kind == "mac") return parsed<MacAddress>(key);
    if (kind == "guid") return parsed<Guid>(key);
    if (kind != "address") return std::nullopt;
    auto const network = take_until(key, '/');
    if (!network) return std::nullopt;
    return parsed<IpAddress>(key, std::string(*network));
}

Snapshot snapshot_of(State const& state) {
    Snapshot fleet;
    fleet.revision = static_cast<std::uint64_t>(state.revision);
    for (auto const& [key, stored] : *state.blocks)
        if (auto block = block_of_record(key, stored.record))
            fleet.blocks.push_back(
                {std::move(*block), static_cast<std::uint64_t>(stored.mod_revision)});
    for (auto const& [key, stored] : *state.claims) {
        auto identity = identity_in(key);
        if (!identity) continue;
        auto const& record = stored.record;
        fleet.claims.push_back(
            {{std::move(*identity), record.state, record.host, record.from, record.vm, record.act,
              record.at, record.public_key, record.from_public_key},
             static_cast<std::uint64_t>(stored.mod_revision)});
    }
    return fleet;
}

GuardedTransaction transaction_of(Transition const& transition, MoveAct const& act) {
    GuardedTransaction guarded;
    guarded.act = act.act;
    for (auto const& [key, revision] : transition.compares)
        guarded.transaction.compares.push_back(
            revision ? unchanged(key, static_cast<Revision>(*revision)) : absent(key));
    for (auto const& [key, claim] : transition.writes) {
        guarded.transaction.otherwise.push_back(key);
        if (claim)
            guarded.transaction.writes.emplace_back(
                Put{key, record_text(record_of(*claim, act.act))});
        else
            guarded.transaction.writes.emplace_back(Erase{key});
        if (guarded.key.empty()) guarded.key = key;
    }
    // What only erases has no value to find an act in.
    if (std::ranges::none_of(transition.writes,
                             [](auto const& one) { return one.claim.has_value(); }))
        guarded.act.clear();
    return guarded;
}

std::optional<GuardedTransaction> grant_block(State const& state, Snapshot const& fleet,
                                              BlockRequest const& request, MoveAct const& act) {
    auto const* const host = find_record(state.hosts, request.host);
    if (!host || !state.identities) return std::nullopt;
    std::vector<Block> taken;
    for (auto const& kept : fleet.blocks) taken.push_back(kept.block);
    auto const block =
        next_block(ranges_of(state.identities->record.ranges, request), taken, request.host);
    if (!block) return std::nullopt;
    auto const key = block_key(block->first);
    BlockRecord const record{to_string(block->first),
                             to_string(block->last),
                             request.host,
                             host->record.public_key,
                             act.act,
                             act.at};
    return GuardedTransaction{
        {{absent(key), unchanged(std::string(keys::identities), state.identities->mod_revision),
          unchanged(keys::of(keys::hosts, request.host), host->mod_revision)},
         {Put{key, record_text(record)}},
         {key}},
        key,
        act.act};
}

}  // namespace vfmgr::fleet
