// SPDX-License-Identifier: Apache-2.0
// The sender of a stream test: sends chunks of packets, each when it is due by the clock. Blocks;
// one thread.
#pragma once

#include <functional>

#include "guest-tools/traffic/sender.hpp"

namespace vfmgr::stream {

// Returns an Error when no stream began or the receiver's counts did not arrive; else those counts.
// Calls `begun` with the accepted opening. `stop` ends the sending when it is readable, and the
// counts are still exact; -1: none.
[[nodiscard]] Result<Summary> send(SendOptions const& options,
                                   std::function<void(Opening const&)> const& begun, int stop);

}  // namespace vfmgr::stream
