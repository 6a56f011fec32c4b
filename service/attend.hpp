// SPDX-License-Identifier: Apache-2.0
// What the main thread of a daemon does while it serves: it tells systemd, waits for signals,
// reloads on SIGHUP, and does what is due now and then.
#pragma once

#include <functional>
#include <string_view>

#include "api/types/time.hpp"

namespace vfmgr {

// Blocks the signals that attend() takes, here and in every thread created later.
void block_signals();

// Called on the main thread.
struct Attended {
    std::function<void()> reload;
    // Twice per period of systemd's watchdog, every 30 s without one, and after each signal. It
    // calls feed_watchdog(), or has the thread call it that must make progress.
    std::function<void()> due;
    std::function<void()> due_daily;
    Clock const& clock;
};

// Returns SIGTERM or SIGINT.
[[nodiscard]] int attend(Attended const& attended);
// Any thread.
void feed_watchdog();

// attend(), between saying to systemd and to the log that the daemon is ready, and that it stops.
void serve_until_signal(Attended const& attended, std::string_view version);

}  // namespace vfmgr
