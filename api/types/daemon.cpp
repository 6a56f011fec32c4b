// SPDX-License-Identifier: Apache-2.0
#include "api/types/daemon.hpp"

#include <fmt/format.h>

#include "api/types/json.hpp"

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
    f.value("drift", readiness.drift);
}

template <class F, Of<TokenRequest> V>
void fields(F& f, V& request) {
    f.value("role", request.role);
    f.defaulted("description", request.description);
    f.maybe("days", request.days);
}

void check(JsonReader& reader, TokenRequest const& request) {
    constexpr std::uint32_t days_max = 3650;
    constexpr std::size_t description_characters_max = 200;
    check_text(reader, "description", request.description, description_characters_max);
    if (request.days && (*request.days < 1 || *request.days > days_max))
        reader.complain("days", fmt::format("must be from 1 to {}", days_max));
}

template <class F, Of<TokenView> V>
void fields(F& f, V& token) {
    f.value("id", token.id);
    f.value("role", token.role);
    f.value("description", token.description);
    f.value("created_at", token.created_at);
    f.nullable("expires_at", token.expires_at);
}

template <class F, Of<NewTokenView> V>
void fields(F& f, V& created) {
    fields(f, created.view);
    f.value("token", created.token);
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
}

template struct Json<About>;
template struct Json<ReadinessView>;
template struct Json<TokenRequest>;
template struct Json<TokenView>;
template struct Json<NewTokenView>;
template struct Json<AuditEntry>;

}  // namespace vfmgr
