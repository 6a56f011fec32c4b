// SPDX-License-Identifier: Apache-2.0
// How hosts join: tokens that admins make, and the request of a host that has one.
#include <fmt/format.h>

#include "api/os/random.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/fleet/membership.hpp"
#include "service/fleet/routes/routes.hpp"
#include "service/routes/page.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::size_t token_id_bytes = 4;
constexpr std::size_t token_secret_bytes = 32;
constexpr std::size_t join_tokens_max = 1024;

JoinTokenView view_of(std::string const& id, JoinTokenRecord const& record) {
    return {id, record.host, record.created_by, record.created_at, record.expires_at};
}

Result<http::Response> list_tokens(Parts const& parts, Call const& call) {
    auto const state = parts.registry.state();
    return page_of_all(
        call, *state->join_tokens, [](auto const& entry) { return entry.first; },
        [now = parts.clock.now()](auto const& entry) -> std::optional<JoinTokenView> {
            if (entry.second.record.expires_at <= now) return std::nullopt;
            return view_of(entry.first, entry.second.record);
        });
}

Result<http::Response> make_token(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const request, body_of<JoinTokenRequest>(call));
    JoinToken const token{random_hex(token_id_bytes), random_hex(token_secret_bytes),
                          parts.self.ca_sha256};
    Request const by{call.who.name, token.id, parts.clock.now()};
    VFMGR_TRY(auto const state,
              parts.writer.write(
                  [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                      if (now.join_tokens->size() >= join_tokens_max)
                          return fail(
                              Problem::limit_exceeded,
                              fmt::format("there are {} join tokens already", join_tokens_max),
                              "use them, or wait until they expire");
                      return std::optional(add_join_token(request, token, by));
                  },
                  etcd_deadline(parts)));
    JoinTokenView const view{token.id, request.host, by.by, by.now,
                             by.now + std::chrono::seconds(request.expires_in_seconds)};
    return json_response(201, NewJoinToken{view, to_string(token)});
}

Result<http::Response> revoke_token(Parts const& parts, Call const& call) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(auto const state,
              parts.writer.write([&](State const& now) { return drop_join_token(now, id); },
                                 etcd_deadline(parts)));
    return no_content();
}

// Open to anyone: the token is the credential. The answer holds nothing that is secret.
Result<http::Response> join_host(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const request, body_of<JoinRequest>(call));
    VFMGR_TRY(auto const state,
              parts.writer.write(
                  [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                      VFMGR_TRY(auto const decided, join(now, request, parts.clock.now()));
                      if (auto const* const guarded = std::get_if<GuardedTransaction>(&decided))
                          return *guarded;
                      return std::nullopt;
                  },
                  etcd_deadline(parts)));
    JoinAnswer answer{parts.self.fleet, request.name, {}, parts.self.ca};
    for (auto const& [name, replica] : *state->replicas) answer.urls.push_back(replica.record.url);
    return json_response(200, answer);
}

}  // namespace

std::vector<FleetRoute> join_routes(Parts const& parts, Workers& workers) {
    auto const tokens = "/v1/join-tokens";
    auto const working = [&](Answer answer) { return work(parts, workers, answer); };
    return {
        {{"GET", tokens, Role::admin, list_parameters()},
         at_once([parts](Call const& call) { return list_tokens(parts, call); })},
        {{"POST", tokens, Role::admin}, working(make_token)},
        {{"DELETE", "/v1/join-tokens/{id}", Role::admin}, working(revoke_token)},
        {{"POST", "/v1/hosts", anyone}, working(join_host)},
    };
}

}  // namespace vfmgr::fleet
