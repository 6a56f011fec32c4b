// SPDX-License-Identifier: Apache-2.0
// What the engine reports, as lines of the log. Free functions; any thread.
#pragma once

#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// What was asked for and done the operation tells by itself.
void log_event(HistoryEvent const& event);
// Of the recovery after a crash, or a stop that did not wait.
void log_recovered(Operation const& operation);

}  // namespace vfmgr
