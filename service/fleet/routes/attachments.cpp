// SPDX-License-Identifier: Apache-2.0
// Attachments, by the host that a request is for: the one that it names, that has the VM, the
// reservation or the attachment. The host itself answers.
#include "api/http/forward.hpp"
#include "service/fleet/placement/host_for.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

void attach(Parts const& parts, Call const& call, http::Respond const& respond) {
    auto const places = read_attach_places(call.request.body);
    if (!places) return respond(refusal(call, places.error()));
    auto const host =
        host_for(*places, *parts.inventory.snapshot(), *parts.registry.state(), call.who);
    if (!host) return respond(refusal(call, host.error()));
    auto request = http::forwarded(call.request, call.request.path);
    request.body = places->body;
    pass_to_host(parts, call, *host, std::move(request), respond);
}

void pass_by_id(Parts const& parts, Call const& call, http::Respond const& respond) {
    auto const host = host_of_attachment(call.ids.at("id"), *parts.inventory.snapshot());
    if (!host) return respond(refusal(call, host.error()));
    pass_to_host(parts, call, *host, http::forwarded(call.request, call.request.path), respond);
}

}  // namespace

std::vector<FleetRoute> attachment_routes(Parts const& parts) {
    auto const passed = [&](auto pass) {
        return [parts, pass](Call const& call, http::Respond const& respond) {
            pass(parts, call, respond);
        };
    };
    auto const* const one = "/v1/attachments/{id}";
    return {
        {{"POST", "/v1/attachments", Role::operator_, {"dry_run"}, for_tenants_too},
         passed(attach)},
        {{"GET", one, Role::viewer, {}, for_tenants_too}, passed(pass_by_id)},
        {{"DELETE", one, Role::operator_, {"dry_run"}, for_tenants_too}, passed(pass_by_id)},
    };
}

}  // namespace vfmgr::fleet
