// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/keeper/admin_acts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "service/fleet/identities/stored.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::size_t named_max = 5;
// Each is compared and erased, and the host and the scheduler are compared besides.
constexpr std::size_t freed_at_once = transaction_operations_max - 4;

// "a; b; c, and 3 more"
std::string some_of(std::vector<std::string> all) {
    auto const more = all.size() > named_max ? all.size() - named_max : 0;
    if (more > 0) all.resize(named_max);
    auto text = fmt::format("{}", fmt::join(all, "; "));
    return more > 0 ? fmt::format("{}; and {} more", text, more) : text;
}

IdentityRanges ranges_of_kind(Identities const& ranges, Identity const& identity) {
    switch (kind_of(identity)) {
        case IdentityKind::mac:
            return mac_ranges(ranges);
        case IdentityKind::guid:
            return guid_ranges(ranges);
        case IdentityKind::address:
            break;
    }
    return address_ranges(ranges, identity.network);
}

bool is_within(IdentityRanges const& ranges, Block const& block) {
    return std::ranges::any_of(ranges, [&](IdentityRange const& range) {
        return range.first.value <= block.first.value && block.last.value <= range.last.value;
    });
}

// Where a block with this identity would begin, as blocks are cut now.
std::string key_of_its_block(Identities const& ranges, Identity const& identity) {
    auto const size = block_size(ranges_of_kind(ranges, identity));
    auto const of_kind = kind_of(identity) == IdentityKind::address ? size : block_size({});
    return block_key(with_low_bits(identity, low_bits(identity) / of_kind * of_kind));
}

Result<Stored<HostRecord> const*> host_that_takes(State const& state, std::string const& name) {
    VFMGR_TRY(auto const* const host, known_host(state, name));
    if (host->record.state == FleetHostState::active && !host->record.leaving) return host;
    return fail(Problem::conflict,
                fmt::format("host {} is {}", name,
                            host->record.leaving ? "leaving" : enum_name(host->record.state)),
                "name a host that is active");
}

tl::unexpected<Error> taken_by(Identity const& identity, std::string const& who) {
    return fail(Problem::conflict, fmt::format("{} {}", described(identity), who),
                "choose another; vfctl fleet identities shows who has which");
}

Result<void> require_free(Snapshot const& fleet, HeldByHost const& held, Identity const& identity,
                          std::string const& host) {
    if (auto const* const kept = claim_of(fleet, identity)) {
        auto const& claim = kept->claim;
        if (claim.state != ClaimState::held)
            return taken_by(identity, fmt::format("is on its way from {}{}{}", claim.from,
                                                  claim.host.empty() ? "" : " to ", claim.host));
        return taken_by(
            identity, fmt::format("is claimed by {} since {}{}{}", claim.host, to_rfc3339(claim.at),
                                  claim.vm.empty() ? "" : " for VM ", claim.vm));
    }
    if (auto const* const block = block_of(fleet, identity); block && block->block.host != host)
        return taken_by(identity, fmt::format("is in a block of {} since {}", block->block.host,
                                              to_rfc3339(block->block.at)));
    for (auto const& [other, all] : held)
        for (auto const& one : all)
            if (one.identity == identity)
                return taken_by(identity, fmt::format("is in use by VM {} on {}", one.vm, other));
    return {};
}

GuardedTransaction write_claim(std::string const& key, std::optional<Revision> before,
                               ClaimRecord record, std::string const& act) {
    record.act = act;
    return {
        {{before ? unchanged(key, *before) : absent(key)}, {Put{key, record_text(record)}}, {key}},
        key,
        act};
}

}  // namespace

Identity identity_of(FleetClaimRequest const& request) {
    if (request.mac) return {"", *request.mac};
    if (request.guid) return {"", *request.guid};
    return {request.network.value_or(""), request.address.value_or(IpAddress{})};
}

// --- ranges ---

FleetRanges ranges_of(State const& state) {
    if (!state.identities) return {};
    return {state.identities->record.ranges, state.identities->mod_revision};
}

std::vector<std::string> blocks_outside(State const& state, Identities const& ranges) {
    std::vector<std::string> outside;
    for (auto const& [block, revision] : snapshot_of(state).blocks)
        if (!is_within(ranges_of_kind(ranges, block.first), block))
            outside.push_back(fmt::format("{} has {}-{}", block.host, described(block.first),
                                          to_string(block.last)));
    return outside;
}

Result<std::optional<GuardedTransaction>> put_ranges(State const& state, Identities const& ranges,
                                                     Request const& by) {
    auto const now = ranges_of(state);
    if (now.revision != 0 && now.ranges == ranges) return std::nullopt;
    if (auto outside = blocks_outside(state, ranges); !outside.empty())
        return fail(
            Problem::conflict,
            fmt::format("hosts have blocks outside these ranges: {}", some_of(std::move(outside))),
            "keep these in the ranges; a host gives its blocks up when it is expelled");
    std::string const key(keys::identities);
    return GuardedTransaction{{{unchanged(key, now.revision)},
                               {Put{key, record_text(IdentitiesRecord{ranges, by.act})}},
                               {key}},
                              key,
                              by.act};
}

// --- claims ---

Result<std::optional<GuardedTransaction>> claim_for_host(State const& state, HeldByHost const& held,
                                                         FleetClaimRequest const& request,
                                                         Request const& by) {
    if (!state.identities)
        return fail(
            Problem::conflict,
            "the fleet has no ranges of identities yet, so its hosts hand out what they like",
            "give it some first: PUT /v1/identities");
    VFMGR_TRY(auto const* const host, host_that_takes(state, request.host));
    auto const identity = identity_of(request);
    auto const fleet = snapshot_of(state);
    auto const* const kept = claim_of(fleet, identity);
    if (kept && kept->claim.state == ClaimState::held && kept->claim.host == request.host &&
        kept->claim.vm == request.vm.value_or(""))
        return std::nullopt;
    VFMGR_CHECK(require_free(fleet, held, identity, request.host));
    ClaimRecord record;
    record.host = request.host;
    record.public_key = host->record.public_key;
    record.vm = request.vm.value_or("");
    record.at = by.now;
    auto guarded = write_claim(claim_key(identity), std::nullopt, std::move(record), by.act);
    auto& compares = guarded.transaction.compares;
    compares.push_back(unchanged(keys::of(keys::hosts, request.host), host->mod_revision));
    compares.push_back(unchanged(std::string(keys::identities), state.identities->mod_revision));
    // The block that it is in, or the one that another leader may be cutting now.
    auto const* const block = block_of(fleet, identity);
    if (block)
        compares.push_back(
            unchanged(block_key(block->block.first), static_cast<Revision>(block->revision)));
    else
        compares.push_back(absent(key_of_its_block(state.identities->record.ranges, identity)));
    return std::optional(std::move(guarded));
}

Result<std::optional<GuardedTransaction>> release_claim(State const& state,
                                                        Identity const& identity,
                                                        Request const& by) {
    auto const key = claim_key(identity);
    auto const name = key.substr(keys::claims.size());
    auto const* const kept = find_record(state.claims, name);
    if (!kept)
        return fail(Problem::not_found, fmt::format("{} is not claimed", described(identity)),
                    "vfctl fleet identities shows which are");
    auto record = kept->record;
    if (record.state != ClaimState::held) {
        if (record.host.empty()) return std::nullopt;
        return fail(Problem::conflict,
                    fmt::format("{} is on its way from {} to {}", described(identity), record.from,
                                record.host),
                    "wait for that move, or abort it");
    }
    record.state = ClaimState::giving_up;
    record.from = std::exchange(record.host, {});
    record.from_public_key = std::exchange(record.public_key, {});
    record.at = by.now;
    return std::optional(write_claim(key, kept->mod_revision, std::move(record), by.act));
}

// --- hosts that leave ---

Result<std::optional<GuardedTransaction>> begin_leaving(State const& state, HeldByHost const& held,
                                                        std::string const& name,
                                                        Request const& by) {
    VFMGR_TRY(auto const* const host, known_host(state, name));
    auto const fleet = snapshot_of(state);
    for (auto const& [claim, revision] : fleet.claims)
        if (claim.host == name && claim.state != ClaimState::held)
            return taken_by(claim.identity,
                            fmt::format("is on its way from {} to {}", claim.from, claim.host));
    if (host->record.state != FleetHostState::active && !host->record.fenced)
        return fail(Problem::conflict,
                    fmt::format("host {} is {}, so nobody asks it to give up what it has", name,
                                enum_name(host->record.state)),
                    "vfctl host confirm; if it is off for good, say so: vfctl host fence");
    if (host->record.leaving) return std::nullopt;
    std::vector<std::string> used;
    if (auto const all = held.find(name); all != held.end() && !host->record.fenced)
        for (auto const& one : all->second)
            if (owner_of(fleet, one.identity) == name)
                used.push_back(fmt::format("VM {} has {}", one.vm, described(one.identity)));
    if (!used.empty())
        return fail(Problem::conflict,
                    fmt::format("what the fleet gave host {} is in use there: {}", name,
                                some_of(std::move(used))),
                    "detach these first; if the host is off for good, say so: vfctl host fence");
    auto record = host->record;
    record.leaving = Statement{by.now, by.by, "expelled"};
    return std::optional(write_host(name, *host, std::move(record), by.act));
}

bool gave_up_all(Stored<HostRecord> const& host, Identities const* document) {
    if (!host.record.leaving) return false;
    if (host.record.fenced) return true;
    return document && document->macs.empty() && document->guids.empty() &&
           document->addresses.empty() && document->claims == IdentityList{} &&
           document->generation.value_or(0) >= static_cast<std::uint64_t>(host.mod_revision);
}

std::optional<GuardedTransaction> free_of_host(State const& state, std::string const& name) {
    auto const* const host = find_record(state.hosts, name);
    if (!host || !host->record.leaving) return std::nullopt;
    GuardedTransaction all;
    auto& [compares, writes, otherwise] = all.transaction;
    auto const add = [&](std::string key, Revision revision) {
        if (writes.size() == freed_at_once) return;
        compares.push_back(unchanged(key, revision));
        writes.emplace_back(Erase{key});
        all.key = std::move(key);
    };
    for (auto const& [key, block] : *state.blocks)
        if (block.record.host == name) add(keys::of(keys::blocks, key), block.mod_revision);
    for (auto const& [key, claim] : *state.claims)
        if (claim.record.host == name && claim.record.state == ClaimState::held)
            add(keys::of(keys::claims, key), claim.mod_revision);
    if (writes.empty()) return std::nullopt;
    compares.push_back(unchanged(keys::of(keys::hosts, name), host->mod_revision));
    return all;
}

}  // namespace vfmgr::fleet
