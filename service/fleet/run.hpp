// SPDX-License-Identifier: Apache-2.0
// vfmgr-fleetd, from its configuration to its sockets. Returns on SIGTERM or SIGINT; reloads on
// SIGHUP.
#pragma once

#include <chrono>
#include <functional>

#include "service/fleet/api.hpp"
#include "service/fleet/reload.hpp"

namespace vfmgr::fleet {

// After SIGTERM, waiting clients get their answer within this time, or a refusal.
inline constexpr std::chrono::seconds last_answers_time{2};
// Work for requests that still runs then has this long to end.
inline constexpr std::chrono::seconds stop_patience{10};

// What the rest of the program may use of its front, which outlives it.
struct Front {
    Workers& workers;
    // Runs work on the io thread, or drops it once the server has stopped. Any thread.
    std::function<void(std::function<void()>)> io_post;
    // Call it when tokens or tenants have changed: closes the connections of those who no longer
    // may what they might. Any thread.
    std::function<void()> cut_lapsed;
};
// Begins what the API answers from, and returns at once: etcd need not be there yet. The owners of
// what the seams refer to are captured in them.
using Begin = std::function<Result<FleetSeams>(Front const& front)>;

// `load` reads the configuration again, on SIGHUP. Call block_signals() before, while there is only
// one thread. Ends the process with status 0 if work for requests doesn't end.
[[nodiscard]] Result<void> run(Config const& config, LoadConfig const& load, Begin const& begin,
                               Clock& clock);

}  // namespace vfmgr::fleet
