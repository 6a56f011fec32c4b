// SPDX-License-Identifier: Apache-2.0
// Logs what engine and server report. Free functions; any thread.
#pragma once

#include "api/http/http.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// Skips events that an operation requested and caused: the operation logs those itself.
void log_events(std::vector<Event> const& events);
// Logs an operation that recovery ended, after a crash or a stop that did not wait.
void log_recovered(Operation const& operation);
// Logs the end of an operation.
void log_operation(Operation const& operation);

}  // namespace vfmgr
