// SPDX-License-Identifier: Apache-2.0
// The latest part of this replica's audit: which principal requested what, from where, and what
// came of it.
#include "api/types/json.hpp"
#include "service/fleet/api.hpp"
#include "service/routes/page.hpp"

namespace vfmgr::fleet {
namespace {

Result<http::Response> list_audit(AuditRing const& audit, Call const& call) {
    VFMGR_TRY(auto const who, text_filter(call, "who"));
    VFMGR_TRY(auto const outcome, text_filter(call, "outcome"));
    VFMGR_TRY(auto const range, range_of(call));
    auto rows = audit.rows(who, outcome, range);
    return page_response(call, std::move(rows.items), rows.next);
}

}  // namespace

std::vector<FleetRoute> audit_routes(FrontParts const& parts) {
    return {
        {{"GET", "/v1/audit", Role::admin, list_parameters({"who", "outcome"})},
         at_once([&audit = parts.audit](Call const& call) { return list_audit(audit, call); })}};
}

}  // namespace vfmgr::fleet
