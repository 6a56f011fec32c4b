// SPDX-License-Identifier: Apache-2.0
// RDMA links in software: desired and observed.
#include "vfmgr/plan/rdma_links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

std::vector<RdmaLink> links_of(Engine const& engine) {
    auto const now = engine.snapshot();
    return rdma_links(*now.host, *now.desired, engine.trusted_netdevs());
}

http::Response show_link(Engine& engine, Call const& call) {
    auto const& name = call.ids.at("name");
    auto const all = links_of(engine);
    auto const link = std::ranges::find(all, name, &RdmaLink::name);
    if (link == all.end())
        return refusal(call,
                       Error{Problem::not_found, fmt::format("there is no RDMA link {}", name),
                             "GET /v1/rdma-links lists those of this host"});
    auto response = json_response(200, *link);
    response.headers["ETag"] = fmt::format("\"{}\"", link->revision);
    return response;
}

void add_link(Engine& engine, Call const& call, http::Respond respond) {
    auto const spec = from_json_text<RdmaLinkSpec>(call.request.body);
    if (!spec) return respond(refusal(call, spec.error()));
    submit(engine, call, AddLink{{call.ids.at("name"), spec->type, spec->ifname}},
           std::move(respond), [&engine, call] { return show_link(engine, call); });
}

Result<bool> is_forced(Call const& call) {
    auto const it = call.request.query.find("force");
    if (it == call.request.query.end() || it->second == "false") return false;
    if (it->second == "true") return true;
    return fail(Problem::invalid_request, fmt::format("force is true or false, not {}", it->second),
                "use ?force=true");
}

void remove_link(Engine& engine, Call const& call, http::Respond respond) {
    auto const force = is_forced(call);
    if (!force) return respond(refusal(call, force.error()));
    submit(engine, call, RemoveLink{{call.ids.at("name"), *force}}, std::move(respond), [] {
        http::Response done;
        done.status = 204;
        return done;
    });
}

}  // namespace

std::vector<Route> rdma_link_routes(Engine& engine) {
    auto const* const path = "/v1/rdma-links/{name}";
    return {
        {"GET", "/v1/rdma-links", Role::viewer,
         [&engine](Call const&, http::Respond respond) {
             respond(list_response(nlohmann::json(links_of(engine))));
         }},
        {"GET", path, Role::viewer,
         [&engine](Call const& call, http::Respond respond) { respond(show_link(engine, call)); }},
        {"PUT",
         path,
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             add_link(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"DELETE",
         path,
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             remove_link(engine, call, std::move(respond));
         },
         {"dry_run", "force"}},
    };
}

}  // namespace vfmgr
