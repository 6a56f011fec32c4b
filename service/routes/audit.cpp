// SPDX-License-Identifier: Apache-2.0
// The audit log: which principal requested what.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t entries_listed = 100;
constexpr std::uint32_t entries_listed_max = 1000;

nlohmann::json audit_json(AuditEntry const& entry) {
    return {{"at", to_rfc3339(entry.at)},     {"who", entry.who},
            {"request_id", entry.request_id}, {"action", entry.action},
            {"subject", entry.subject},       {"outcome", entry.outcome},
            {"refused", entry.refused},       {"requests", entry.requests}};
}

void list_audit(Engine& engine, Call const& call, http::Respond respond) {
    auto const limit = whole_number(call, "limit", {1, entries_listed_max, entries_listed});
    if (!limit) return respond(refusal(call, limit.error()));
    answer_in_turn(engine, call, std::move(respond), [call, limit = *limit](Control::State& state) {
        auto const entries = state.store.audit(limit);
        if (!entries) return refusal(call, entries.error());
        auto items = nlohmann::json::array();
        for (auto const& entry : *entries) items.push_back(audit_json(entry));
        return list_response(std::move(items));
    });
}

}  // namespace

std::vector<Route> audit_routes(Engine& engine) {
    return {{"GET",
             "/v1/audit",
             Role::admin,
             [&engine](Call const& call, http::Respond respond) {
                 list_audit(engine, call, std::move(respond));
             },
             {"limit"}}};
}

}  // namespace vfmgr
