// SPDX-License-Identifier: Apache-2.0
// This host's membership of a fleet. Only an admin of the host begins and ends it.
#include <fmt/format.h>

#include <functional>

#include "api/http/ca_pem.hpp"
#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/named.hpp"

namespace vfmgr {
namespace {

std::optional<FleetMembership> membership_now(FleetSeams const& seams, Snapshot const& now) {
    auto membership = now.desired->fleet;
    if (membership) membership->contacted_at = seams.fleet.contacted_at();
    return membership;
}

std::string note_of(Time restored_at, bool is_member) {
    auto const text = fmt::format(
        "the store was restored from a backup at {}, and does not know "
        "what was attached since that backup",
        to_rfc3339(restored_at));
    if (!is_member) return text;
    return text + "; nothing is attached or reserved until it is confirmed: vfctl fleet confirm";
}

Query<http::Response> show_fleet(FleetSeams const& seams, Call const&, Snapshot const& now) {
    FleetView view;
    view.membership = membership_now(seams, now);
    view.restored_at = now.desired->restored_at;
    view.public_key = seams.fleet.public_key();
    if (view.restored_at) view.note = note_of(*view.restored_at, view.membership.has_value());
    return seams.engine.store_facts().then(
        [view](Engine::StoreFacts const& store) -> Result<http::Response> {
            auto whole = view;
            whole.store = store.id;
            whole.last_event = store.last_event;
            return json_response(200, whole);
        });
}

Result<void> check_ca(std::string const& pem) {
    auto const fingerprint = http::ca_fingerprint(pem);
    if (fingerprint) return {};
    auto error = fingerprint.error();
    error.violations.push_back({"/ca", error.detail});
    return fail(std::move(error));
}

// The fleet would reach this host over TLS alone.
Result<void> require_tls(FleetSeams const& seams) {
    if (seams.serves_tls) return {};
    return fail(Problem::conflict,
                "this host's API is served on no network, so no fleet reaches it",
                "set enabled = true and an address in [listen.tls] of /etc/vfmgr/vfmgr.toml; then: "
                "systemctl restart vfmgrd");
}

// The answer waits until the replicas are let in: they may come at once.
Result<http::Response> joined(FleetSeams const& seams, Call const&, Snapshot const& now) {
    seams.fleet.follow(now.desired->fleet);
    auto const membership = membership_now(seams, now);
    if (!membership)
        return fail(Problem::conflict, "this host has left the fleet since", "join it again");
    return json_response(200, *membership);
}

Result<Change> join(FleetSeams const& seams, Call const& call) {
    VFMGR_TRY(auto membership, from_json_text<FleetMembership>(call.request.body));
    VFMGR_CHECK(check_ca(membership.ca));
    VFMGR_CHECK(require_tls(seams));
    return Change{JoinFleet{std::move(membership)}, std::bind_front(joined, seams)};
}

Result<http::Response> has_left(FleetSeams const& seams, Call const&, Snapshot const& now) {
    seams.fleet.follow(now.desired->fleet);
    return no_content();
}

Result<Change> leave(FleetSeams const& seams, Call const&) {
    return Change{LeaveFleet{}, std::bind_front(has_left, seams)};
}

Result<Change> confirm(Call const&) {
    return Change{ConfirmRestored{}, removed};
}

}  // namespace

std::vector<Route> fleet_routes(FleetSeams seams) {
    auto const* const fleet = "/v1/fleet";
    return {
        {"GET", fleet, Role::viewer, std::bind_front(show_fleet, seams)},
        {"PUT", fleet, Role::admin, std::bind_front(join, seams), {"dry_run"}},
        {"DELETE", fleet, Role::admin, std::bind_front(leave, seams), {"dry_run"}},
        {"POST", "/v1/fleet/confirm", Role::admin, confirm, {"dry_run"}},
    };
}

}  // namespace vfmgr
