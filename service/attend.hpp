// SPDX-License-Identifier: Apache-2.0
// What the main thread does while the daemon serves: it waits for signals, reloads on SIGHUP, feeds
// the watchdog, and does what is due now and then.
#pragma once

#include "service/auth/token_uses.hpp"
#include "service/reload.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// Blocks the signals that attend() takes, here and in every thread created later.
void block_signals();

struct Attended {
    Engine& engine;
    http::Server& server;
    AuditTrail& trail;
    TokenUses& token_uses;
    Reload& reload;
    Clock const& clock;
};

// Returns SIGTERM or SIGINT.
[[nodiscard]] int attend(Attended const& attended);

}  // namespace vfmgr
