// SPDX-License-Identifier: Apache-2.0
// The host's end for rping, ibv_rc_pingpong and perftest in one VM: opens, shows and closes it.
#include <fmt/format.h>

#include <functional>

#include "api/types/json.hpp"
#include "service/guest/access.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

using guestd::Link;

Error not_open(std::string const& attachment) {
    return {Problem::not_found,
            fmt::format("interop clients of attachment {} are not served", attachment),
            fmt::format("serve them: vfctl interop open {}", attachment)};
}

// The answer's window; not_open() where it has none.
Query<InteropWindow> window_of(Link& guests, guestd::Request request, std::string const& id) {
    using Asked = Query<InteropWindow>;
    return Asked([&guests, request = std::move(request), id](Client const&, Asked::Answer answer) {
        guests.ask(request, [id, answer = std::move(answer)](Result<guestd::Answer> answered) {
            if (!answered) return answer(fail(std::move(answered.error())));
            if (!answered->window) return answer(fail(not_open(id)));
            answer(std::move(*answered->window));
        });
    });
}

auto as_json() {
    return [](InteropWindow const& window) -> Result<http::Response> {
        return json_response(200, window);
    };
}

Result<Query<http::Response>> open_interop(Link& guests, Call const& call, Snapshot const& now) {
    auto const& body = call.request.body;
    auto const& id = call.ids.at("id");
    VFMGR_TRY(auto const request, from_json_text<InteropRequest>(body.empty() ? "{}" : body));
    VFMGR_TRY(auto const permit, interop_permit(now, id));
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run)
        return dry_run_response({fmt::format(
            "rping, ibv_rc_pingpong and perftest are served for {} s at {}, to {} only",
            request.seconds, to_string(permit.host_address), to_string(permit.peer_address))});
    return window_of(guests,
                     {.call = guestd::Call::open_interop, .permit = permit, .interop = request}, id)
        .then(as_json());
}

Query<InteropWindow> find_window(Link& guests, std::string const& id) {
    return window_of(guests, {.call = guestd::Call::find_interop, .attachment = id}, id);
}

Query<http::Response> show_interop(Link& guests, Call const& call, Snapshot const&) {
    return find_window(guests, call.ids.at("id")).then(as_json());
}

Result<Query<http::Response>> close_interop(Link& guests, Call const& call, Snapshot const&) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run)
        return find_window(guests, id).then([](InteropWindow const&) -> Result<http::Response> {
            return dry_run_response({"the interop clients are no longer served"});
        });
    return window_of(guests, {.call = guestd::Call::close_interop, .attachment = id}, id)
        .then([](InteropWindow const&) -> Result<http::Response> { return no_content(); });
}

}  // namespace

std::vector<Route> interop_routes(Link& guests) {
    auto const* const path = "/v1/attachments/{id}/interop";
    auto const of = std::ref(guests);
    return {
        {"GET", path, Role::viewer, std::bind_front(show_interop, of)},
        {"PUT", path, Role::operator_, std::bind_front(open_interop, of), {"dry_run"}},
        {"DELETE", path, Role::operator_, std::bind_front(close_interop, of), {"dry_run"}},
    };
}

}  // namespace vfmgr
