// SPDX-License-Identifier: Apache-2.0
// Sessions of people in a browser, which a token or a client certificate begins. Only the answer
// that begins one contains its secret.
#include <fmt/format.h>

#include <functional>

#include "api/types/json.hpp"
#include "service/auth/sessions.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

Result<http::Response> begin_session(SessionSeams const& seams, Call const& call, Snapshot const&) {
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    auto const now = seams.clock.now();
    auto const tokens = seams.engine.snapshot().tokens;
    VFMGR_TRY(auto session, session_of(call.who, call.request.peer, *tokens, now));
    if (dry_run)
        return dry_run_response({fmt::format("a session of {} begins, which ends at {}",
                                             session.name, to_rfc3339(session.expires_at))});
    NewSession begun{call.who.name, call.who.role, call.who.scopes, {}, session.expires_at, {}};
    if (call.who.tenant) begun.tenant = call.who.tenant->tenant.name;
    VFMGR_TRY(begun.token, seams.sessions.begin(std::move(session), *tokens, now));
    return json_response(201, begun);
}

Result<http::Response> end_session(SessionSeams const& seams, Call const& call, Snapshot const&) {
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    auto const& session = call.who.session_sha256;
    if (session.empty())
        return fail(Problem::not_found,
                    fmt::format("this request is of {} itself, not of a session", call.who.name),
                    "send the session's token; POST /v1/sessions begins a session");
    if (dry_run) return dry_run_response({fmt::format("this session of {} ends", call.who.name)});
    seams.sessions.end(session);
    return no_content();
}

}  // namespace

std::vector<Route> session_routes(SessionSeams seams) {
    return {
        {"POST",
         "/v1/sessions",
         Role::viewer,
         std::bind_front(begin_session, seams),
         {"dry_run"},
         for_tenants_too},
        {"DELETE",
         "/v1/sessions/current",
         Role::viewer,
         std::bind_front(end_session, seams),
         {"dry_run"},
         for_tenants_too},
    };
}

}  // namespace vfmgr
