// SPDX-License-Identifier: Apache-2.0
// The API's gate: authenticates each request by token, by client certificate or by the local user,
// limits its rate, logs and audits it.
#pragma once

#include "service/auth/rules_in_force.hpp"
#include "service/auth/sessions.hpp"
#include "service/auth/token_uses.hpp"
#include "service/routes/router.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// Its arguments outlive it. Its functions run on the io thread, except `answered`, which any thread
// may call.
[[nodiscard]] Gate api_gate(RulesInForce const& rules, Engine const& engine,
                            std::shared_ptr<AuditTrail> const& trail, TokenUses& uses,
                            Sessions const& sessions, Clock& clock);

}  // namespace vfmgr
