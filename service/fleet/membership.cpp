// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr::fleet {
namespace {

constexpr auto another_token = "have an admin of the fleet make another: vfctl fleet token";

// Without an act: it is done at most once, and whether it was shows by the key, which is gone then.
GuardedTransaction erase_key(std::string const& key, Revision mod_revision) {
    return {{{unchanged(key, mod_revision)}, {Erase{key}}, {key}}, key, {}};
}

// Only as long as the host is as it is known: the mark of a host in quarantine stays.
GuardedTransaction write_mark(std::string const& name, Stored<HostRecord> const& host,
                              Stored<MarkRecord> const* before, MarkRecord const& record) {
    auto const key = keys::of(keys::marks, name);
    return {{{unchanged(key, before ? before->mod_revision : 0),
              unchanged(keys::of(keys::hosts, name), host.mod_revision)},
             {Put{key, record_text(record)}},
             {key}},
            key,
            record.act};
}

std::uint32_t next_number(State const& state) {
    std::uint32_t last = 0;
    for (auto const& [text, stored] : *state.host_numbers)
        last = std::max(
            last, static_cast<std::uint32_t>(parse_digits(text, {.max = UINT32_MAX}).value_or(0)));
    return last + 1;
}

Result<Stored<JoinTokenRecord> const*> valid_token(State const& state, JoinToken const& token,
                                                   std::string const& name, Time now) {
    auto const* const found = find_record(state.join_tokens, token.id);
    if (!found || found->record.sha256 != verify::digest_hex(token.secret))
        return fail(Problem::unauthorized,
                    fmt::format("join token {} is wrong, or was used or has expired", token.id),
                    another_token);
    if (found->record.expires_at <= now)
        return fail(Problem::unauthorized,
                    fmt::format("join token {} expired at {}", token.id,
                                to_rfc3339(found->record.expires_at)),
                    another_token);
    auto const& host = found->record.host;
    if (host && *host != name)
        return fail(Problem::forbidden,
                    fmt::format("join token {} is for host {}, not {}", token.id, *host, name),
                    fmt::format("join as that host: --name {}; or {}", *host, another_token));
    return found;
}

}  // namespace

Result<Stored<HostRecord> const*> known_host(State const& state, std::string const& name) {
    if (auto const* const found = find_record(state.hosts, name)) return found;
    return fail(Problem::not_found, fmt::format("the fleet has no host {}", quoted(name)),
                "vfctl host list shows them");
}

GuardedTransaction write_host(std::string const& name, Stored<HostRecord> const& before,
                              HostRecord record, std::string const& act) {
    auto const key = keys::of(keys::hosts, name);
    record.act = act;
    return {
        {{unchanged(key, before.mod_revision)}, {Put{key, rewritten(before.text, record)}}, {key}},
        key,
        act};
}

GuardedTransaction begin_fleet(FleetRecord const& fleet, std::string const& act) {
    std::string const key(keys::fleet);
    auto record = fleet;
    record.act = act;
    return {{{absent(key), absent(std::string(keys::format))},
             {Put{key, record_text(record)},
              Put{std::string(keys::format), record_text(FormatRecord{})}},
             {key}},
            key,
            act};
}

std::string new_act() {
    constexpr std::size_t act_bytes = 16;
    return random_hex(act_bytes);
}

Result<void> check_fleet(State const& state, std::string const& fleet, std::string const& ca) {
    if (state.format && *state.format != format_version)
        return fail(Problem::unsupported,
                    fmt::format("etcd has the fleet in format {}, and this vfmgr-fleetd knows {}",
                                *state.format, format_version),
                    "install the version of the other replicas");
    if (!state.fleet) return {};
    auto const& there = state.fleet->record;
    if (there.id == fleet && there.ca == ca) return {};
    return fail(Problem::conflict,
                fmt::format("etcd's prefix belongs to fleet {}, and this replica's certificate is "
                            "of fleet {}",
                            there.id, fleet),
                "set another etcd.prefix in fleetd.toml, or give the replica a certificate of "
                "that fleet's CA");
}

GuardedTransaction add_join_token(JoinTokenRequest const& request, JoinToken const& token,
                                  Request const& by) {
    auto const key = keys::of(keys::join_tokens, token.id);
    JoinTokenRecord const record{verify::digest_hex(token.secret),
                                 request.host,
                                 by.by,
                                 by.now,
                                 by.now + std::chrono::seconds(request.expires_in_seconds),
                                 by.act};
    return {{{absent(key)}, {Put{key, record_text(record)}}, {key}}, key, by.act};
}

std::optional<GuardedTransaction> drop_join_token(State const& state, std::string const& id) {
    auto const* const found = find_record(state.join_tokens, id);
    if (!found) return std::nullopt;
    return erase_key(keys::of(keys::join_tokens, id), found->mod_revision);
}

std::optional<GuardedTransaction> drop_expired_tokens(State const& state, Time now) {
    GuardedTransaction all;
    for (auto const& [id, stored] : *state.join_tokens) {
        if (stored.record.expires_at > now) continue;
        if (all.transaction.writes.size() == transaction_operations_max) break;
        auto const one = erase_key(keys::of(keys::join_tokens, id), stored.mod_revision);
        all.key = one.key;
        all.transaction.compares.push_back(one.transaction.compares.front());
        all.transaction.writes.push_back(one.transaction.writes.front());
    }
    if (all.transaction.writes.empty()) return std::nullopt;
    return all;
}

Result<std::variant<GuardedTransaction, HasJoined>> join(State const& state,
                                                         JoinRequest const& request, Time now) {
    VFMGR_TRY(auto const token, JoinToken::parse(request.token));
    auto const* const there = find_record(state.hosts, request.name);
    // The token is gone by then, so its secret can't be checked again: what is answered is public.
    if (there && there->record.joined_with == token.id &&
        there->record.public_key == request.public_key)
        return HasJoined{};
    VFMGR_TRY(auto const* const valid, valid_token(state, token, request.name, now));
    if (there)
        return fail(
            Problem::conflict,
            fmt::format("the fleet has a host {} already, at {}", request.name, there->record.url),
            fmt::format("choose another name; or take that one out: vfctl host expel {}",
                        request.name));
    HostRecord record;
    record.number = next_number(state);
    record.url = request.url;
    record.public_key = request.public_key;
    record.joined_at = now;
    record.joined_by = valid->record.created_by;
    record.joined_with = token.id;
    record.act = token.id;
    auto const host = keys::of(keys::hosts, request.name);
    auto const number = keys::of(keys::host_numbers, std::to_string(record.number));
    auto const used = keys::of(keys::join_tokens, token.id);
    return GuardedTransaction{
        {{absent(host), absent(number), unchanged(used, valid->mod_revision)},
         {Put{host, record_text(record)}, Put{number, record_text(HostNumberRecord{request.name})},
          Erase{used}},
         {host}},
        host,
        record.act};
}

Result<GuardedTransaction> patch_host(State const& state, std::string const& name,
                                      FleetHostPatch const& patch, Request const& by) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    auto record = before->record;
    if (patch.labels) record.labels = *patch.labels;
    if (patch.rack) record.rack = *patch.rack;
    if (record.rack && record.rack->empty()) record.rack.reset();
    if (patch.partitions) record.partitions = *patch.partitions;
    if (patch.cordoned && !*patch.cordoned) {
        record.cordoned.reset();
        record.leaving.reset();
    }
    if (patch.cordoned && *patch.cordoned)
        record.cordoned = Statement{by.now, by.by, patch.reason.value_or("")};
    return write_host(name, *before, std::move(record), by.act);
}

Result<GuardedTransaction> fence_host(State const& state, std::string const& name,
                                      FencedRequest const& request, Request const& by) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    auto record = before->record;
    record.fenced = Statement{by.now, by.by, request.evidence};
    return write_host(name, *before, std::move(record), by.act);
}

Result<GuardedTransaction> unfence_host(State const& state, std::string const& name,
                                        Request const& by) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    if (!before->record.fenced)
        return fail(Problem::conflict, fmt::format("host {} is not fenced", name),
                    "there is nothing to do");
    auto record = before->record;
    record.fenced.reset();
    return write_host(name, *before, std::move(record), by.act);
}

Result<GuardedTransaction> activate_host(State const& state, std::string const& name,
                                         std::string const& act) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    if (before->record.state != FleetHostState::joining)
        return fail(Problem::conflict, fmt::format("host {} has joined before", name));
    auto record = before->record;
    record.state = FleetHostState::active;
    return write_host(name, *before, std::move(record), act);
}

Result<GuardedTransaction> quarantine_host(State const& state, std::string const& name,
                                           std::string const& reason, std::string const& act) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    auto record = before->record;
    record.state = FleetHostState::quarantined;
    record.reason = reason;
    return write_host(name, *before, std::move(record), act);
}

std::optional<GuardedTransaction> mark_host(State const& state, std::string const& name,
                                            std::string const& store, KnownEvent const& last,
                                            std::string const& act) {
    auto const* const host = find_record(state.hosts, name);
    if (!host || host->record.state != FleetHostState::active) return std::nullopt;
    auto const* const before = find_record(state.marks, name);
    // Another replica knew more.
    if (before && (before->record.store != store || before->record.event >= last.number))
        return std::nullopt;
    MarkRecord record;
    record.store = store;
    record.event = last.number;
    record.event_is = last.is;
    record.generation = before ? before->record.generation : 0;
    record.act = act;
    return write_mark(name, *host, before, record);
}

std::optional<GuardedTransaction> mark_generation(State const& state, std::string const& name,
                                                  std::uint64_t generation,
                                                  std::string const& act) {
    auto const* const host = find_record(state.hosts, name);
    auto const* const before = find_record(state.marks, name);
    if (!host || host->record.state != FleetHostState::active || !before ||
        before->record.generation >= generation)
        return std::nullopt;
    auto record = before->record;
    record.generation = generation;
    record.act = act;
    return write_mark(name, *host, before, record);
}

Result<GuardedTransaction> confirm_host(State const& state, std::string const& name,
                                        MarkRecord const& as_it_is, Request const& by) {
    VFMGR_TRY(auto const* const before, known_host(state, name));
    if (before->record.state != FleetHostState::quarantined)
        return fail(Problem::conflict, fmt::format("host {} is not in quarantine", name),
                    "there is nothing to confirm");
    auto record = before->record;
    record.state = FleetHostState::active;
    record.reason.clear();
    auto guarded = write_host(name, *before, std::move(record), by.act);
    auto mark = as_it_is;
    mark.act = by.act;
    guarded.transaction.writes.emplace_back(Put{keys::of(keys::marks, name), record_text(mark)});
    return guarded;
}

std::size_t held_by_host(State const& state, std::string_view host) {
    std::size_t held = 0;
    for (auto const& [key, block] : *state.blocks) held += block.record.host == host ? 1U : 0U;
    for (auto const& [key, stored] : *state.claims) {
        auto const& claim = stored.record;
        bool const gives_up = claim.from == host && claim.state == ClaimState::giving_up;
        held += claim.host == host || gives_up ? 1U : 0U;
    }
    return held;
}

Result<GuardedTransaction> expel_host(State const& state, std::string const& name) {
    VFMGR_TRY(auto const* const host, known_host(state, name));
    if (auto const held = held_by_host(state, name); held > 0)
        return fail(Problem::conflict,
                    fmt::format("host {} still has {} blocks and claims of identities", name, held),
                    "drain it, so that it gives them up; if it is off for good, say so: vfctl host "
                    "fence");
    auto guarded = erase_key(keys::of(keys::hosts, name), host->mod_revision);
    guarded.transaction.writes.emplace_back(Erase{keys::of(keys::marks, name)});
    return guarded;
}

FleetHost view_of(std::string const& name, HostRecord const& record) {
    FleetHost host;
    host.name = name;
    host.url = record.url;
    host.public_key = record.public_key;
    host.state = record.state;
    host.reason = record.reason;
    host.labels = record.labels;
    host.rack = record.rack;
    host.cordoned = record.cordoned;
    host.fenced = record.fenced;
    host.leaving = record.leaving;
    host.partitions = record.partitions;
    host.joined_at = record.joined_at;
    host.joined_by = record.joined_by;
    return host;
}

}  // namespace vfmgr::fleet
