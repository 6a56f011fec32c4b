// SPDX-License-Identifier: Apache-2.0
// Networks of the host.
#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/named.hpp"

namespace vfmgr {
namespace {

Result<http::Response> list_networks(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, pf_filter(call));
    return page_of_named(call, now.desired->networks, &DesiredNetwork::network,
                         [&](Network const& one) { return !pf || host_address_on(one, *pf); });
}

Result<http::Response> show_network(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const* const found, named(call, "network", now.desired->networks));
    return with_etag(json_response(200, found->network), found->revision);
}

Result<Change> put_network(Call const& call) {
    VFMGR_TRY(auto network, named_body<Network>(call, "network"));
    return Change{PutNetwork{std::move(network)}, show_network};
}

Result<Change> remove_network(Call const& call) {
    return Change{RemoveNetwork{call.ids.at("name")}, removed};
}

}  // namespace

std::vector<Route> network_routes() {
    auto const* const path = "/v1/networks/{name}";
    return {
        {"GET", "/v1/networks", Role::viewer, Published{list_networks}, list_parameters({"pf"}),
         for_tenants_too},
        {"GET", path, Role::viewer, show_network, {}, for_tenants_too},
        {"PUT", path, Role::admin, put_network, {"dry_run"}},
        {"DELETE", path, Role::admin, remove_network, {"dry_run"}},
    };
}

}  // namespace vfmgr
