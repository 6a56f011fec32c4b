// SPDX-License-Identifier: Apache-2.0
// Pools of VFs, reservations of their VFs, and the identities that this host may hand out.
#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/named.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

Result<http::Response> list_pools(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const network, text_filter(call, "network"));
    return page_of_named(call, now.desired->pools, &DesiredPool::pool, [&](Pool const& one) {
        return network.empty() || network == one.defaults.network;
    });
}

Result<http::Response> show_pool(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const* const found, named(call, "pool", now.desired->pools));
    return with_etag(json_response(200, found->pool), found->revision);
}

Result<Change> put_pool(Call const& call) {
    VFMGR_TRY(auto pool, named_body<Pool>(call, "pool"));
    return Change{PutPool{std::move(pool)}, show_pool};
}

Result<Change> remove_pool(Call const& call) {
    return Change{RemovePool{call.ids.at("name")}, removed};
}

Result<http::Response> list_reservations(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, pf_filter(call));
    VFMGR_TRY(auto const pool, text_filter(call, "pool"));
    VFMGR_TRY(auto const network, text_filter(call, "network"));
    auto const passes = [&](Reservation const& one) {
        return (!pf || std::ranges::find(one.vfs, *pf, &VfId::pf) != one.vfs.end()) &&
               (pool.empty() || pool == one.spec.pool) &&
               (network.empty() || network == one.spec.network);
    };
    return page_of_named(call, now.desired->reservations, std::identity(), passes);
}

Result<http::Response> show_reservation(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const* const found, named(call, "reservation", now.desired->reservations));
    return json_response(200, *found);
}

Result<Change> reserve(Call const& call) {
    VFMGR_TRY(auto name, own_name(call, "reservation"));
    VFMGR_TRY(auto spec, from_json_text<ReservationSpec>(call.request.body));
    return Change{Reserve{std::move(name), std::move(spec)}, show_reservation};
}

Result<Change> release(Call const& call) {
    return Change{Release{call.ids.at("name")}, removed};
}

http::Response show_identities(Call const&, Snapshot const& now) {
    auto const& [identities, revision] = now.desired->handed_out;
    IdentitiesView const view{identities, free_identities(*now.host, *now.desired)};
    return with_etag(json_response(200, view), revision);
}

Result<Change> put_identities(Call const& call) {
    VFMGR_TRY(auto view, from_json_text<IdentitiesView>(call.request.body));
    return Change{PutIdentities{std::move(view.identities)}, show_identities};
}

}  // namespace

std::vector<Route> pool_routes() {
    auto const* const pool = "/v1/pools/{name}";
    auto const* const reservation = "/v1/reservations/{name}";
    auto const* const identities = "/v1/identities";
    return {
        {"GET", "/v1/pools", Role::viewer, Published{list_pools}, list_parameters({"network"}),
         for_tenants_too},
        {"GET", pool, Role::viewer, show_pool, {}, for_tenants_too},
        {"PUT", pool, Role::admin, put_pool, {"dry_run"}},
        {"DELETE", pool, Role::admin, remove_pool, {"dry_run"}},
        {"GET", "/v1/reservations", Role::viewer, list_reservations,
         list_parameters({"pf", "pool", "network"}), for_tenants_too},
        {"GET", reservation, Role::viewer, show_reservation, {}, for_tenants_too},
        {"PUT", reservation, Role::operator_, reserve, {"dry_run"}, for_tenants_too},
        {"DELETE", reservation, Role::operator_, release, {"dry_run"}, for_tenants_too},
        {"GET", identities, Role::viewer, show_identities},
        {"PUT", identities, Role::admin, put_identities, {"dry_run"}},
    };
}

}  // namespace vfmgr
