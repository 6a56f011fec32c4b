// SPDX-License-Identifier: Apache-2.0
// The host's end for rping, ibv_rc_pingpong and perftest in one VM: opens, shows and closes it.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/guest/access.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

using interop::InteropResponder;

Error not_open(std::string const& attachment) {
    return {Problem::not_found,
            fmt::format("interop clients of attachment {} are not served", attachment),
            fmt::format("serve them: vfctl interop open {}", attachment)};
}

void open_interop(Engine& engine, InteropResponder& responder, Call const& call,
                  http::Respond respond) {
    auto const& body = call.request.body;
    auto const request = from_json_text<InteropRequest>(body.empty() ? "{}" : body);
    if (!request) return respond(refusal(call, request.error()));
    auto permit = interop_permit(engine.snapshot(), call.ids.at("id"));
    if (!permit) return respond(refusal(call, permit.error()));
    auto const dry_run = is_dry_run(call);
    if (!dry_run) return respond(refusal(call, dry_run.error()));
    if (*dry_run)
        return respond(dry_run_response({fmt::format(
            "rping, ibv_rc_pingpong and perftest are served for {} s at {}, to {} only",
            request->seconds, to_string(permit->host_address), to_string(permit->peer_address))}));
    responder.open(
        std::move(*permit), *request,
        [call, respond = std::move(respond)](Result<InteropWindow> const& opened) {
            respond(opened ? json_response(200, *opened) : refusal(call, opened.error()));
        });
}

http::Response show_interop(InteropResponder const& responder, Call const& call) {
    auto const found = responder.find(call.ids.at("id"));
    return found ? json_response(200, *found) : refusal(call, not_open(call.ids.at("id")));
}

void close_interop(InteropResponder& responder, Call const& call, http::Respond respond) {
    auto const dry_run = is_dry_run(call);
    if (!dry_run) return respond(refusal(call, dry_run.error()));
    if (*dry_run)
        return respond(responder.find(call.ids.at("id"))
                           ? dry_run_response({"the interop clients are no longer served"})
                           : refusal(call, not_open(call.ids.at("id"))));
    responder.close(call.ids.at("id"), [call, respond = std::move(respond)](bool closed) {
        if (!closed) return respond(refusal(call, not_open(call.ids.at("id"))));
        http::Response response;
        response.status = 204;
        respond(std::move(response));
    });
}

}  // namespace

std::vector<Route> interop_routes(Engine& engine, InteropResponder& responder) {
    auto const* const path = "/v1/attachments/{id}/interop";
    return {
        {"GET", path, Role::viewer,
         [&responder](Call const& call, http::Respond respond) {
             respond(show_interop(responder, call));
         }},
        {"PUT",
         path,
         Role::operator_,
         [&engine, &responder](Call const& call, http::Respond respond) {
             open_interop(engine, responder, call, std::move(respond));
         },
         {"dry_run"}},
        {"DELETE",
         path,
         Role::operator_,
         [&responder](Call const& call, http::Respond respond) {
             close_interop(responder, call, std::move(respond));
         },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
