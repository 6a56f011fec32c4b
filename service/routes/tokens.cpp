// SPDX-License-Identifier: Apache-2.0
// Bearer tokens for the TLS listener. Only the answer that creates a token, or its next secret,
// contains the secret.
#include <fmt/format.h>

#include <functional>

#include "api/types/json.hpp"
#include "service/auth/token_rules.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"

namespace vfmgr {
namespace {

TokenView view_of(Token const& token) {
    TokenView view{token.id,         token.role,        token.description, token.created_at,
                   token.expires_at, !token.expires_at, token.scopes,      token.rotated_at};
    if (token.last_use) {
        view.last_used_at = token.last_use->at;
        view.last_used_from = token.last_use->from;
    }
    view.tenant = token.tenant;
    return view;
}

std::string ends(std::optional<Time> const& expires_at) {
    return expires_at ? "expires at " + to_rfc3339(*expires_at) : "never expires";
}

// A token of a tenant that does not exist could do nothing.
Result<void> check_tenant(Snapshot const& now, std::optional<std::string> const& tenant) {
    if (!tenant || now.desired->tenants.contains(*tenant)) return {};
    return fail(Problem::not_found, fmt::format("there is no tenant {}", *tenant),
                fmt::format("make it first: vfctl tenant set {} -f FILE", *tenant));
}

Result<Query<http::Response>> create(TokenSeams const& seams, Call const& call,
                                     Snapshot const& published_now) {
    VFMGR_TRY(auto const request, from_json_text<TokenRequest>(call.request.body));
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    auto const now = seams.clock.now();
    VFMGR_TRY(auto const expires_at, expiry_of(request, now));
    VFMGR_CHECK(check_scopes(request.scopes, seams.nouns));
    VFMGR_CHECK(may_hand_out(call.who, request.scopes));
    VFMGR_CHECK(check_tenant(published_now, request.tenant));
    if (dry_run)
        return dry_run_response({fmt::format("a token with role {} is created, which {}",
                                             enum_name(request.role), ends(expires_at))});
    auto const made = make_token();
    Token token{
        made.id,    made.sha256,   std::string(enum_name(request.role)), request.description, now,
        expires_at, request.scopes};
    token.tenant = request.tenant;
    return seams.engine.save_token(std::move(token))
        .then([secret = made.secret](Token const& saved) -> Result<http::Response> {
            return json_response(201, NewTokenView{view_of(saved), secret});
        });
}

// The store returns them in the order of this key.
CreatedAndId place_of_token(Token const& token) {
    auto const created = token.created_at.time_since_epoch();
    return {std::chrono::floor<std::chrono::milliseconds>(created).count(), token.id};
}

Query<http::Response> list(TokenSeams const& seams, Call const& call) {
    return seams.engine.tokens().then([call, &uses = seams.uses](std::vector<Token> const& tokens) {
        return page_of_all(call, tokens, place_of_token, [&uses](Token const& token) {
            return std::optional(view_of(uses.with_last_use(token)));
        });
    });
}

Error no_token(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no token {}", id),
            "GET /v1/tokens lists them"};
}

Result<Token> published(Snapshot const& now, std::string const& id) {
    for (auto const& [sha256, token] : *now.tokens)
        if (token.id == id) return token;
    return fail(no_token(id));
}

Result<Query<http::Response>> rotate(TokenSeams const& seams, Call const& call,
                                     Snapshot const& published_now) {
    auto const& id = call.ids.at("id");
    TokenRotation rotation;
    if (!call.request.body.empty()) {
        VFMGR_TRY(rotation, from_json_text<TokenRotation>(call.request.body));
    }
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    auto const made = make_token();
    auto const change =
        [who = call.who, sha256 = made.sha256, now = seams.clock.now(),
         grace = std::chrono::seconds(rotation.grace_seconds)](Token token) -> Result<Token> {
        VFMGR_CHECK(may_hand_out(who, token.scopes));
        return rotated(std::move(token), sha256, now, grace);
    };
    if (dry_run) {
        VFMGR_TRY(auto const token, published(published_now, id).and_then(change));
        auto const old = token.former ? "until " + to_rfc3339(token.former->until) : "no longer";
        return dry_run_response(
            {fmt::format("token {} gets another secret and {}; the present "
                         "secret is valid {}",
                         id, ends(token.expires_at), old)});
    }
    return seams.engine.change_token(id, change)
        .then([id, secret =
                       made.secret](std::optional<Token> const& changed) -> Result<http::Response> {
            if (!changed) return fail(no_token(id));
            return json_response(200, NewTokenView{view_of(*changed), secret});
        });
}

Result<http::Response> would_revoke(Snapshot const& now, std::string const& id) {
    VFMGR_CHECK(published(now, id));
    return dry_run_response({fmt::format("token {} is revoked", id)});
}

Result<Query<http::Response>> revoke(TokenSeams const& seams, Call const& call,
                                     Snapshot const& now) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run) return would_revoke(now, id);
    return seams.engine.erase_token(id).then([id](bool erased) -> Result<http::Response> {
        if (!erased) return fail(no_token(id));
        return no_content();
    });
}

}  // namespace

std::vector<Route> token_routes(TokenSeams seams) {
    seams.nouns.emplace_back("tokens");
    return {
        {"GET", "/v1/tokens", Role::admin,
         [seams](Call const& call, Snapshot const&) { return list(seams, call); },
         list_parameters()},
        {"POST", "/v1/tokens", Role::admin, std::bind_front(create, seams), {"dry_run"}},
        {"POST",
         "/v1/tokens/{id}/rotate",
         Role::admin,
         std::bind_front(rotate, seams),
         {"dry_run"}},
        {"DELETE", "/v1/tokens/{id}", Role::admin, std::bind_front(revoke, seams), {"dry_run"}},
    };
}

}  // namespace vfmgr
