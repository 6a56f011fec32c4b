// SPDX-License-Identifier: Apache-2.0
#include "service/routes/host_gate.hpp"

namespace vfmgr {

Audit audit_of(std::shared_ptr<AuditTrail> const& trail) {
    return {[trail](AuditEntry entry) { trail->add(std::move(entry)); },
            [trail](AuditEntry const& entry) { trail->count(entry); }};
}

Gate host_gate(RulesInForce const& rules, Engine const& engine,
               std::shared_ptr<AuditTrail> const& trail, TokenUses& uses, Sessions const& sessions,
               FleetAccess& fleet, Clock& clock) {
    auto const access = [&engine]() -> Access {
        auto now = engine.snapshot();
        return {std::move(now.tokens), {now.desired, &now.desired->tenants}};
    };
    return api_gate({.rules = rules,
                     .access = access,
                     .audit = audit_of(trail),
                     .uses = uses,
                     .sessions = sessions,
                     .clock = clock,
                     .fleet = [&fleet] { return fleet.trust(); },
                     .fleet_is_here = [&fleet](Time now) { fleet.note_contact(now); }});
}

}  // namespace vfmgr
