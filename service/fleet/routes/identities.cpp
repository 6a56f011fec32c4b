// SPDX-License-Identifier: Apache-2.0
// The fleet's identities: the ranges that its hosts' blocks are cut from, who has which, and single
// ones that are claimed.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/fleet_identities.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/fleet/identities/holders.hpp"
#include "service/fleet/identities/stored.hpp"
#include "service/fleet/keeper/admin_acts.hpp"
#include "service/fleet/keeper/use.hpp"
#include "service/fleet/routes/routes.hpp"
#include "service/routes/conditions.hpp"
#include "service/routes/page.hpp"

namespace vfmgr::fleet {
namespace {

// --- ranges ---

http::Response ranges_response(State const& state) {
    auto const [ranges, revision] = ranges_of(state);
    return with_etag(json_response(200, ranges), static_cast<std::uint64_t>(revision));
}

Result<http::Response> show_ranges(Parts const& parts, Call const&) {
    return ranges_response(*parts.registry.state());
}

Result<void> check_based_on(State const& state, IfMatch const& based_on) {
    auto const revision = static_cast<std::uint64_t>(ranges_of(state).revision);
    auto const& any_of = based_on.any_of;
    if (!any_of || std::ranges::find(*any_of, revision) != any_of->end()) return {};
    return fail(Problem::precondition_failed,
                fmt::format("the ranges are of revision {} now", revision),
                "read them again, and base the change on that");
}

Result<Identities> ranges_in(Call const& call) {
    VFMGR_TRY(auto ranges, body_of<Identities>(call));
    if (!ranges.generation) return ranges;
    return fail(Problem::invalid_request,
                "the fleet's ranges have no generation, claims or given_up: hosts get these",
                "send macs, guids and addresses alone");
}

// A block may have been granted while the ranges were written: what was cut from the former ones
// stays in the new ones, or these are not taken.
Result<http::Response> replace_ranges(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const ranges, ranges_in(call));
    VFMGR_TRY(auto const based_on, if_match(call));
    Request const by{call.who.name, new_act(), parts.clock.now()};
    FleetRanges before;
    VFMGR_TRY(auto state, parts.writer.write(
                              [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                                  VFMGR_CHECK(check_based_on(now, based_on));
                                  before = ranges_of(now);
                                  return put_ranges(now, ranges, by);
                              },
                              etcd_deadline(parts)));
    auto const outside = blocks_outside(*state, ranges);
    if (outside.empty() || ranges_of(*state).ranges != ranges) return ranges_response(*state);
    Request const again{call.who.name, new_act(), parts.clock.now()};
    VFMGR_TRY(state, parts.writer.write(
                         [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                             if (ranges_of(now).ranges != ranges) return std::nullopt;
                             return put_ranges(now, before.ranges, again);
                         },
                         etcd_deadline(parts)));
    return fail(
        Problem::conflict,
        fmt::format("a host was given a block outside these ranges meanwhile: {}", outside.front()),
        "read the ranges again, and try again");
}

// --- who has which ---

FleetIdentity row_of(Holder const& holder) {
    FleetIdentity row;
    row.kind = kind_of(holder.identity);
    row.identity = to_string(holder.identity);
    if (!holder.identity.network.empty()) row.network = holder.identity.network;
    row.host = holder.host;
    row.vm = holder.vm;
    row.vm_uuid = holder.vm_uuid;
    row.since = holder.since;
    row.public_key = holder.certificate;
    row.source = holder.source;
    row.state = holder.state;
    return row;
}

// The order of the list: as its text, so that a cursor can say it.
std::string place_of(Holder const& holder) {
    return claim_key(holder.identity) + " " + holder.host;
}

Result<http::Response> list_holders(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const host, text_filter(call, "host"));
    VFMGR_TRY(auto const identity, text_filter(call, "identity"));
    VFMGR_TRY(auto const vm, text_filter(call, "vm"));
    VFMGR_TRY(auto const kind, choice_filter<IdentityKind>(call, "kind"));
    VFMGR_TRY(auto const state, choice_filter<IdentityState>(call, "state"));
    auto all =
        holders(snapshot_of(*parts.registry.state()), held_by_all(*parts.inventory.snapshot()));
    std::erase_if(all, [&](Holder const& one) {
        return (!host.empty() && one.host != host) ||
               (!identity.empty() && to_string(one.identity) != identity) ||
               (!vm.empty() && one.vm != vm && one.vm_uuid != vm) ||
               (kind && kind_of(one.identity) != *kind) || (state && one.state != *state);
    });
    std::ranges::sort(all, {}, place_of);
    return page_of_all(call, all, place_of,
                       [](Holder const& one) { return std::optional(row_of(one)); });
}

// --- claims ---

FleetIdentity claimed(State const& state, Identity const& identity) {
    auto const fleet = snapshot_of(state);
    FleetIdentity row;
    row.kind = kind_of(identity);
    row.identity = to_string(identity);
    if (!identity.network.empty()) row.network = identity.network;
    auto const* const kept = claim_of(fleet, identity);
    if (!kept) return row;
    row.host = kept->claim.host;
    if (!kept->claim.vm.empty()) row.vm_uuid = kept->claim.vm;
    row.since = kept->claim.at;
    row.public_key = kept->claim.public_key;
    row.source = IdentitySource::claim;
    row.state = IdentityState::reserved;
    return row;
}

Result<http::Response> make_claim(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const request, body_of<FleetClaimRequest>(call));
    Request const by{call.who.name, new_act(), parts.clock.now()};
    auto const held = held_by_all(*parts.inventory.snapshot());
    VFMGR_TRY(
        auto const state,
        parts.writer.write([&](State const& now) { return claim_for_host(now, held, request, by); },
                           etcd_deadline(parts)));
    return json_response(201, claimed(*state, identity_of(request)));
}

Result<Identity> identity_in_path(Call const& call) {
    auto const network = call.request.query.find("network");
    auto const& kind = call.ids.at("kind");
    auto const& text = call.ids.at("identity");
    bool const of_network = network != call.request.query.end();
    auto const identity =
        identity_in(of_network ? fmt::format("{}/{}/{}", kind, network->second, text)
                               : fmt::format("{}/{}", kind, text));
    if (identity) return *identity;
    return fail(Problem::invalid_request, fmt::format("{} {} is no identity", kind, quoted(text)),
                "name it as /v1/claims/mac/MAC, /v1/claims/guid/GUID or "
                "/v1/claims/address/ADDRESS?network=NETWORK");
}

// The host gives it up, and until it has, it is nobody else's.
Result<http::Response> end_claim(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const identity, identity_in_path(call));
    Request const by{call.who.name, new_act(), parts.clock.now()};
    auto const deadline = etcd_deadline(parts);
    VFMGR_TRY(auto state,
              parts.writer.write([&](State const& now) { return release_claim(now, identity, by); },
                                 deadline));
    auto const name = claim_key(identity).substr(keys::claims.size());
    for (;;) {
        auto const* const kept = find_record(state->claims, name);
        if (!kept || kept->record.state == ClaimState::held) return no_content();
        if (!parts.registry.wait_for(state->revision + 1, deadline))
            return fail(Problem::unavailable,
                        fmt::format("host {} has not given up {} yet; it is asked until it has",
                                    kept->record.from, described(identity)),
                        "detach what uses it there, and send the request again");
        state = parts.registry.state();
    }
}

}  // namespace

std::vector<FleetRoute> identity_routes(Parts const& parts, Workers& workers) {
    auto const reading = [parts](auto answer) {
        return at_once([parts, answer](Call const& call) { return answer(parts, call); });
    };
    auto const working = [&](Answer answer) { return work(parts, workers, answer); };
    auto const ranges = "/v1/identities";
    return {
        {{"GET", ranges, Role::viewer}, reading(show_ranges)},
        {{"PUT", ranges, Role::admin}, working(replace_ranges)},
        {{"GET", "/v1/fleet/identities", Role::viewer,
          list_parameters({"host", "kind", "identity", "vm", "state"})},
         working(list_holders)},
        {{"POST", "/v1/claims", Role::operator_}, working(make_claim)},
        {{"DELETE", "/v1/claims/{kind}/{identity}", Role::operator_, {"network"}},
         working(end_claim)},
    };
}

}  // namespace vfmgr::fleet
