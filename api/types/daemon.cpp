// SPDX-License-Identifier: Apache-2.0
#include "api/types/daemon.hpp"

#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/tenant.hpp"

namespace vfmgr {

template <class F, Of<About> V>
void fields(F& f, V& about) {
    f.value("name", about.name);
    f.value("version", about.version);
    f.value("api", about.api);
    f.value("features", about.features);
    f.value("links", about.links);
}

template <class F, Of<ReadinessView> V>
void fields(F& f, V& readiness) {
    f.value("ready", readiness.ready);
    f.value("not_ready", readiness.not_ready);
    f.nullable("drift", readiness.drift);
}

template <class F, Of<ProblemExplanation> V>
void fields(F& f, V& problem) {
    f.value("type", problem.type);
    f.value("code", problem.code);
    f.value("title", problem.title);
    f.value("status", problem.status);
    f.value("cause", problem.cause);
    f.value("remedy", problem.remedy);
}

template <class F, Of<TokenRequest> V>
void fields(F& f, V& request) {
    f.value("role", request.role);
    f.defaulted("description", request.description);
    f.maybe("scopes", request.scopes);
    f.maybe("days", request.days);
    f.maybe("expires_in_seconds", request.expires_in_seconds);
    f.maybe("expires_at", request.expires_at);
    f.defaulted("never_expires", request.never_expires);
    f.maybe("tenant", request.tenant);
}

namespace {

void check_range(JsonReader& reader, char const* key, std::optional<std::uint32_t> const& value,
                 std::uint32_t least, std::int64_t most) {
    if (value && (*value < least || *value > most))
        reader.complain(key, fmt::format("must be from {} to {}", least, most));
}

}  // namespace

void check(JsonReader& reader, TokenRequest const& request) {
    using std::chrono::duration_cast;
    constexpr std::size_t description_characters_max = 200;
    constexpr std::uint32_t seconds_min = 60;
    check_text(reader, "description", request.description, description_characters_max);
    check_range(reader, "days", request.days, 1,
                duration_cast<std::chrono::days>(token_lifetime_max).count());
    check_range(reader, "expires_in_seconds", request.expires_in_seconds, seconds_min,
                duration_cast<std::chrono::seconds>(token_lifetime_max).count());
    if (request.scopes && request.scopes->empty())
        reader.complain("scopes", "must name at least one; leave it out for all");
    if (request.tenant && !can_be_a_tenants(*request.tenant))
        reader.complain("tenant", rule_of_tenant_names);
    else if (request.tenant && request.role == Role::admin)
        reader.complain("tenant", "can't be that of an admin's token: an admin has no limits");
    int const ends = int{request.days.has_value()} + int{request.expires_in_seconds.has_value()} +
                     int{request.expires_at.has_value()} + int{request.never_expires};
    if (ends > 1)
        reader.complain("",
                        "must have one of days, expires_in_seconds, expires_at and "
                        "never_expires at most");
}

template <class F, Of<TokenRotation> V>
void fields(F& f, V& rotation) {
    f.defaulted("grace_seconds", rotation.grace_seconds);
}

void check(JsonReader& reader, TokenRotation const& rotation) {
    constexpr std::uint32_t day_seconds = 24 * 3600;
    check_range(reader, "grace_seconds", rotation.grace_seconds, 0, day_seconds);
}

template <class F, Of<TokenView> V>
void fields(F& f, V& token) {
    f.value("id", token.id);
    f.value("role", token.role);
    f.value("description", token.description);
    f.value("created_at", token.created_at);
    f.nullable("expires_at", token.expires_at);
    f.value("never_expires", token.never_expires);
    f.nullable("scopes", token.scopes);
    f.nullable("rotated_at", token.rotated_at);
    f.nullable("last_used_at", token.last_used_at);
    f.nullable("last_used_from", token.last_used_from);
    f.nullable("tenant", token.tenant);
}

template <class F, Of<NewTokenView> V>
void fields(F& f, V& created) {
    fields(f, created.view);
    f.value("token", created.token);
}

template <class F, Of<NewSession> V>
void fields(F& f, V& session) {
    f.value("who", session.who);
    f.value("role", session.role);
    f.nullable("scopes", session.scopes);
    f.nullable("tenant", session.tenant);
    f.value("expires_at", session.expires_at);
    f.value("token", session.token);
}

template <class F, Of<AuditEntry> V>
void fields(F& f, V& entry) {
    f.value("at", entry.at);
    f.value("who", entry.who);
    f.value("request_id", entry.request_id);
    f.value("action", entry.action);
    f.value("subject", entry.subject);
    f.value("outcome", entry.outcome);
    f.value("refused", entry.refused);
    f.value("requests", entry.requests);
    f.value("from", entry.from);
    f.nullable("plan_digest", entry.plan_digest);
    f.nullable("operation", entry.operation);
}

template struct Json<About>;
template struct Json<ReadinessView>;
template struct Json<ProblemExplanation>;
template struct Json<TokenRequest>;
template struct Json<TokenRotation>;
template struct Json<TokenView>;
template struct Json<NewTokenView>;
template struct Json<NewSession>;
template struct Json<AuditEntry>;

}  // namespace vfmgr
