// SPDX-License-Identifier: Apache-2.0
// Bearer tokens for the TLS listener. Only the answer that creates a token contains its secret.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/auth/token.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t days_max = 3650;
constexpr std::size_t description_characters_max = 200;

struct TokenRequest {
    Role role = Role::viewer;
    std::string description;
    std::optional<std::uint32_t> days;
};
template <class F, Of<TokenRequest> V>
void fields(F& f, V& request) {
    f.value("role", request.role);
    f.defaulted("description", request.description);
    f.maybe("days", request.days);
}
void check(JsonReader& reader, TokenRequest const& request) {
    check_text(reader, "description", request.description, description_characters_max);
    if (request.days && (*request.days < 1 || *request.days > days_max))
        reader.complain("days", fmt::format("must be from 1 to {}", days_max));
}

nlohmann::json token_json(Token const& token) {
    nlohmann::json out{{"id", token.id},
                       {"role", token.role},
                       {"description", token.description},
                       {"created_at", to_rfc3339(token.created_at)},
                       {"expires_at", nullptr}};
    if (token.expires_at) out["expires_at"] = to_rfc3339(*token.expires_at);
    return out;
}

void create(Engine& engine, Clock& clock, Call const& call, http::Respond respond) {
    auto const request = from_json_text<TokenRequest>(call.request.body);
    if (!request) return respond(refusal(call, request.error()));
    auto const dry_run = is_dry_run(call);
    if (!dry_run) return respond(refusal(call, dry_run.error()));
    if (*dry_run)
        return respond(dry_run_response({fmt::format(
            "a token with role {} is created, which {}", enum_name(request->role),
            request->days ? fmt::format("expires in {} days", *request->days) : "never expires")}));
    auto const made = make_token();
    if (!made) return respond(refusal(call, made.error()));
    Token token{made->id,
                made->sha256,
                std::string(enum_name(request->role)),
                request->description,
                clock.now(),
                {}};
    if (request->days) token.expires_at = clock.now() + std::chrono::hours(24) * *request->days;
    answer_in_turn(engine, call, std::move(respond),
                   [call, token, secret = made->secret](Control::State& state) {
                       if (auto const saved = state.save_token(token); !saved)
                           return refusal(call, saved.error());
                       auto body = token_json(token);
                       body["token"] = secret;
                       return json_response(201, body);
                   });
}

void list(Engine& engine, Call const& call, http::Respond respond) {
    answer_in_turn(engine, call, std::move(respond), [call](Control::State& state) {
        auto const tokens = state.store.tokens();
        if (!tokens) return refusal(call, tokens.error());
        auto items = nlohmann::json::array();
        for (auto const& token : *tokens) items.push_back(token_json(token));
        return list_response(std::move(items));
    });
}

Error no_token(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no token {}", id),
            "GET /v1/tokens lists them"};
}

http::Response would_revoke(Engine const& engine, Call const& call) {
    auto const& id = call.ids.at("id");
    for (auto const& [sha256, token] : *engine.snapshot().tokens)
        if (token.id == id) return dry_run_response({fmt::format("token {} is revoked", id)});
    return refusal(call, no_token(id));
}

void revoke(Engine& engine, Call const& call, http::Respond respond) {
    auto const dry_run = is_dry_run(call);
    if (!dry_run) return respond(refusal(call, dry_run.error()));
    if (*dry_run) return respond(would_revoke(engine, call));
    answer_in_turn(engine, call, std::move(respond), [call](Control::State& state) {
        auto const erased = state.erase_token(call.ids.at("id"));
        if (!erased) return refusal(call, erased.error());
        if (!*erased) return refusal(call, no_token(call.ids.at("id")));
        http::Response done;
        done.status = 204;
        return done;
    });
}

}  // namespace

std::vector<Route> token_routes(Engine& engine, Clock& clock) {
    return {
        {"GET", "/v1/tokens", Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             list(engine, call, std::move(respond));
         }},
        {"POST",
         "/v1/tokens",
         Role::admin,
         [&engine, &clock](Call const& call, http::Respond respond) {
             create(engine, clock, call, std::move(respond));
         },
         {"dry_run"}},
        {"DELETE",
         "/v1/tokens/{id}",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             revoke(engine, call, std::move(respond));
         },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
