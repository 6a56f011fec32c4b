// SPDX-License-Identifier: Apache-2.0
// What engine and server report, as lines of the log. Free functions; any thread.
#pragma once

#include "api/http/http.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// What was asked for and done the operation tells by itself.
void log_event(HistoryEvent const& event);
// Of the recovery after a crash, or a stop that did not wait.
void log_recovered(Operation const& operation);
// Each that has ended.
void log_operation(Operation const& operation);
// Connections that got no place: three lines of each peer, and then one every ten seconds, at most.
[[nodiscard]] std::function<void(http::Peer const&, Error const&)> log_turned_away(Clock& clock);

}  // namespace vfmgr
