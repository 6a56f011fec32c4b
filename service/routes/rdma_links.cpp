// SPDX-License-Identifier: Apache-2.0
// RDMA links in software: desired and observed.
#include "vfmgr/plan/rdma_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"

namespace vfmgr {
namespace {

std::vector<RdmaLink> links_of(Snapshot const& now, TrustedNetdevs const& trusted) {
    return rdma_links(*now.host, *now.desired, trusted);
}

Result<http::Response> list_links(TrustedNetdevs const& trusted, Call const& call,
                                  Snapshot const& now) {
    VFMGR_TRY(auto const state, choice_filter<RdmaLinkState>(call, "state"));
    return page_of_all(call, links_of(now, trusted), &RdmaLink::name, [&](RdmaLink const& link) {
        return !state || *state == link.state ? std::optional(link) : std::nullopt;
    });
}

Result<http::Response> show_link(TrustedNetdevs const& trusted, Call const& call,
                                 Snapshot const& now) {
    auto const& name = call.ids.at("name");
    auto const all = links_of(now, trusted);
    auto const link = std::ranges::find(all, name, &RdmaLink::name);
    if (link == all.end())
        return fail(Problem::not_found, fmt::format("there is no RDMA link {}", name),
                    "GET /v1/rdma-links lists those of this host");
    return with_etag(json_response(200, *link), link->revision);
}

Result<Change> add_link(TrustedNetdevs const& trusted, Call const& call) {
    VFMGR_TRY(auto const spec, from_json_text<RdmaLinkSpec>(call.request.body));
    return Change{AddLink{{call.ids.at("name"), spec.type, spec.ifname}},
                  std::bind_front(show_link, std::cref(trusted))};
}

Result<Change> remove_link(Call const& call) {
    VFMGR_TRY(bool const force, is_true(call, "force"));
    return Change{RemoveLink{{call.ids.at("name"), force}},
                  [](Call const&, Snapshot const&) { return no_content(); }};
}

}  // namespace

std::vector<Route> rdma_link_routes(Engine const& engine) {
    auto const* const path = "/v1/rdma-links/{name}";
    auto const trusted = std::cref(engine.trusted_netdevs());
    return {
        {"GET", "/v1/rdma-links", Role::viewer, std::bind_front(list_links, trusted),
         list_parameters({"state"})},
        {"GET", path, Role::viewer, std::bind_front(show_link, trusted)},
        {"PUT", path, Role::admin, std::bind_front(add_link, trusted), {"dry_run"}},
        {"DELETE", path, Role::admin, remove_link, {"dry_run", "force"}},
    };
}

}  // namespace vfmgr
