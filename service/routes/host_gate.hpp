// SPDX-License-Identifier: Apache-2.0
// vfmgrd's gate: its store has the tokens, the tenants and the audit.
#pragma once

#include "service/fleet_access.hpp"
#include "service/routes/gate.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

[[nodiscard]] Audit audit_of(std::shared_ptr<AuditTrail> const& trail);
// Its arguments outlive it.
[[nodiscard]] Gate host_gate(RulesInForce const& rules, Engine const& engine,
                             std::shared_ptr<AuditTrail> const& trail, TokenUses& uses,
                             Sessions const& sessions, FleetAccess& fleet, Clock& clock);

}  // namespace vfmgr
