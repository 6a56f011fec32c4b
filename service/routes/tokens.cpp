// SPDX-License-Identifier: Apache-2.0
// Bearer tokens for the TLS listener. Only the answer that creates a token contains its secret.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

TokenView view_of(Token const& token) {
    return {token.id, token.role, token.description, token.created_at, token.expires_at};
}

Result<Query<http::Response>> create(Engine& engine, Clock const& clock, Call const& call) {
    VFMGR_TRY(auto const request, from_json_text<TokenRequest>(call.request.body));
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run)
        return dry_run_response({fmt::format(
            "a token with role {} is created, which {}", enum_name(request.role),
            request.days ? fmt::format("expires in {} days", *request.days) : "never expires")});
    auto const made = make_token();
    Token token{made.id,     made.sha256, std::string(enum_name(request.role)), request.description,
                clock.now(), {}};
    if (request.days) token.expires_at = clock.now() + std::chrono::hours(24) * *request.days;
    return engine.save_token(std::move(token))
        .then([secret = made.secret](Token const& saved) -> Result<http::Response> {
            return json_response(201, NewTokenView{view_of(saved), secret});
        });
}

Query<http::Response> list(Engine& engine) {
    return engine.tokens().then([](std::vector<Token> const& tokens) -> Result<http::Response> {
        std::vector<TokenView> views;
        std::ranges::transform(tokens, std::back_inserter(views), view_of);
        return list_response(views);
    });
}

Error no_token(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no token {}", id),
            "GET /v1/tokens lists them"};
}

Result<http::Response> would_revoke(Snapshot const& now, std::string const& id) {
    for (auto const& [sha256, token] : *now.tokens)
        if (token.id == id) return dry_run_response({fmt::format("token {} is revoked", id)});
    return fail(no_token(id));
}

Result<Query<http::Response>> revoke(Engine& engine, Call const& call, Snapshot const& now) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run) return would_revoke(now, id);
    return engine.erase_token(id).then([id](bool erased) -> Result<http::Response> {
        if (!erased) return fail(no_token(id));
        return no_content();
    });
}

}  // namespace

std::vector<Route> token_routes(Engine& engine, Clock& clock) {
    return {
        {"GET", "/v1/tokens", Role::admin,
         [&engine](Call const&, Snapshot const&) { return list(engine); }},
        {"POST",
         "/v1/tokens",
         Role::admin,
         [&engine, &clock](Call const& call, Snapshot const&) {
             return create(engine, clock, call);
         },
         {"dry_run"}},
        {"DELETE",
         "/v1/tokens/{id}",
         Role::admin,
         std::bind_front(revoke, std::ref(engine)),
         {"dry_run"}},
    };
}

}  // namespace vfmgr
