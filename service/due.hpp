// SPDX-License-Identifier: Apache-2.0
// What vfmgrd does now and then, besides answering. Main thread.
#pragma once

#include "service/attend.hpp"
#include "service/auth/token_uses.hpp"
#include "service/reload.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// They outlive the returned functions.
struct DueWork {
    Engine& engine;
    http::Server& server;
    AuditTrail& trail;
    TokenUses& token_uses;
    Reload& reload;
    Clock const& clock;
};
[[nodiscard]] Attended attended_by(DueWork const& due);
// At a stop.
void save_all_token_uses(DueWork const& due);

}  // namespace vfmgr
