// SPDX-License-Identifier: Apache-2.0
// The host's end for rping, ibv_rc_pingpong and perftest in one VM: opens, shows and closes it.
#include <fmt/format.h>

#include <functional>

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

Result<Query<http::Response>> open_interop(InteropResponder& responder, Call const& call,
                                           Snapshot const& now) {
    auto const& body = call.request.body;
    VFMGR_TRY(auto const request, from_json_text<InteropRequest>(body.empty() ? "{}" : body));
    VFMGR_TRY(auto const permit, interop_permit(now, call.ids.at("id")));
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run)
        return dry_run_response({fmt::format(
            "rping, ibv_rc_pingpong and perftest are served for {} s at {}, to {} only",
            request.seconds, to_string(permit.host_address), to_string(permit.peer_address))});
    using Opened = Query<InteropWindow>;
    return Opened([&responder, permit, request](Client const&, Opened::Answer answer) {
               responder.open(permit, request, std::move(answer));
           })
        .then([](InteropWindow const& opened) -> Result<http::Response> {
            return json_response(200, opened);
        });
}

Result<http::Response> show_interop(InteropResponder const& responder, Call const& call,
                                    Snapshot const&) {
    auto const& id = call.ids.at("id");
    if (auto const found = responder.find(id)) return json_response(200, *found);
    return fail(not_open(id));
}

Result<Query<http::Response>> close_interop(InteropResponder& responder, Call const& call,
                                            Snapshot const&) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run && !responder.find(id)) return fail(not_open(id));
    if (dry_run) return dry_run_response({"the interop clients are no longer served"});
    using Closed = Query<http::Response>;
    return Closed([&responder, id](Client const&, Closed::Answer const& answer) {
        responder.close(id, [id, answer](bool closed) {
            closed ? answer(no_content()) : answer(fail(not_open(id)));
        });
    });
}

}  // namespace

std::vector<Route> interop_routes(InteropResponder& responder) {
    auto const* const path = "/v1/attachments/{id}/interop";
    auto const of = std::ref(responder);
    return {
        {"GET", path, Role::viewer, std::bind_front(show_interop, of)},
        {"PUT", path, Role::operator_, std::bind_front(open_interop, of), {"dry_run"}},
        {"DELETE", path, Role::operator_, std::bind_front(close_interop, of), {"dry_run"}},
    };
}

}  // namespace vfmgr
