// SPDX-License-Identifier: Apache-2.0
// The API's gate: who asks, by token or as a user of this host; how often each may; and that it is
// logged and audited.
#pragma once

#include "service/audit_trail.hpp"
#include "service/config.hpp"
#include "service/routes/router.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// What it refers to outlives it. Its functions are called on the io thread, but for `answered`,
// which any thread may call.
[[nodiscard]] Gate api_gate(Config const& config, Engine const& engine,
                            std::shared_ptr<AuditTrail> const& trail, Clock& clock);

}  // namespace vfmgr
