// SPDX-License-Identifier: Apache-2.0
// Networks of the host.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

http::Response list_networks(Call const&, Snapshot const& now) {
    std::vector<Network> networks;
    for (auto const& [name, each] : now.desired->networks) networks.push_back(each.network);
    return list_response(networks);
}

Result<http::Response> show_network(Call const& call, Snapshot const& now) {
    auto const& name = call.ids.at("name");
    auto const found = now.desired->networks.find(name);
    if (found == now.desired->networks.end())
        return fail(Problem::not_found, fmt::format("there is no network {}", name),
                    "GET /v1/networks lists those of this host");
    return with_etag(json_response(200, found->second.network), found->second.revision);
}

// The path names the network. A body that names it, too, such as a GET's answer, names the same.
Result<Change> put_network(Call const& call) {
    auto const& name = call.ids.at("name");
    VFMGR_TRY(auto network, from_json_text<Network>(call.request.body));
    if (!can_be_a_networks(name))
        return fail(Problem::invalid_request,
                    fmt::format("{} can't be a network's name: it {}", name, rule_of_network_names),
                    "choose another name");
    if (!network.name.empty() && network.name != name)
        return fail(Problem::invalid_request,
                    fmt::format("the path names network {}, but the body {}", name, network.name),
                    "leave the name out of the body: a network is not renamed");
    network.name = name;
    return Change{PutNetwork{std::move(network)}, show_network};
}

Result<Change> remove_network(Call const& call) {
    return Change{RemoveNetwork{call.ids.at("name")},
                  [](Call const&, Snapshot const&) { return no_content(); }};
}

}  // namespace

std::vector<Route> network_routes() {
    auto const* const path = "/v1/networks/{name}";
    return {
        {"GET", "/v1/networks", Role::viewer, list_networks},
        {"GET", path, Role::viewer, show_network},
        {"PUT", path, Role::admin, put_network, {"dry_run"}},
        {"DELETE", path, Role::admin, remove_network, {"dry_run"}},
    };
}

}  // namespace vfmgr
