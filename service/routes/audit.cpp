// SPDX-License-Identifier: Apache-2.0
// The audit log: which principal requested what.
#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t entries_listed = 100;
constexpr std::uint32_t entries_listed_max = 1000;

Result<Query<http::Response>> list_audit(Engine& engine, Call const& call) {
    VFMGR_TRY(auto const limit,
              whole_number(call, "limit", {1, entries_listed_max, entries_listed}));
    return listed(engine.audit(limit));
}

}  // namespace

std::vector<Route> audit_routes(Engine& engine) {
    return {{"GET",
             "/v1/audit",
             Role::admin,
             [&engine](Call const& call, Snapshot const&) { return list_audit(engine, call); },
             {"limit"}}};
}

}  // namespace vfmgr
