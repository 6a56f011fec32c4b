// SPDX-License-Identifier: Apache-2.0
// The audit log: which principal requested what, from where, and what came of it.
#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page_of_rows.hpp"

namespace vfmgr {
namespace {

Result<Query<http::Response>> list_audit(Engine& engine, Call const& call) {
    AuditFilter filter;
    VFMGR_TRY(filter.who, text_filter(call, "who"));
    VFMGR_TRY(filter.outcome, text_filter(call, "outcome"));
    VFMGR_TRY(auto const range, range_of(call));
    return page_of_rows(call, engine.audit(std::move(filter), range));
}

}  // namespace

std::vector<Route> audit_routes(Engine& engine) {
    return {{"GET", "/v1/audit", Role::admin,
             [&engine](Call const& call, Snapshot const&) { return list_audit(engine, call); },
             list_parameters({"who", "outcome"})}};
}

}  // namespace vfmgr
