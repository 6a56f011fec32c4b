// SPDX-License-Identifier: Apache-2.0
#include "service/attend.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include <ctime>

#include "service/log.hpp"

namespace vfmgr {
namespace {

sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const one : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, one);
    return set;
}

// systemd compares the time with those of its own jobs (sd_notify(3)).
void reload(std::function<void()> const& take) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    auto const microseconds = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
    sd_notify(0, fmt::format("RELOADING=1\nMONOTONIC_USEC={}", microseconds).c_str());
    take();
    sd_notify(0, "READY=1");
}

// Twice per watchdog period, as sd_watchdog_enabled(3) advises; every 30 s without a watchdog.
timespec tick() {
    std::uint64_t watchdog_us = 0;
    sd_watchdog_enabled(0, &watchdog_us);
    auto const tick_us = watchdog_us > 0 ? watchdog_us / 2 : 30'000'000;
    return {static_cast<time_t>(tick_us / 1'000'000),
            static_cast<long>(tick_us % 1'000'000) * 1000};
}

}  // namespace

void block_signals() {
    auto const set = signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int attend(Attended const& attended) {
    auto const set = signals();
    auto const pause = tick();
    Deadline daily_at{};  // at the first tick, then once a day
    for (;;) {
        int const got = sigtimedwait(&set, nullptr, &pause);
        if (got == SIGTERM || got == SIGINT) return got;
        if (got == SIGHUP) reload(attended.reload);
        attended.due();  // after a signal, too: many of them must not starve the watchdog
        if (attended.clock.steady_now() < daily_at) continue;
        daily_at = attended.clock.steady_now() + std::chrono::hours(24);
        attended.due_daily();
    }
}

void feed_watchdog() {
    sd_notify(0, "WATCHDOG=1");
}

void serve_until_signal(Attended const& attended, std::string_view version) {
    sd_notify(0, "READY=1");
    log(Severity::notice, "ready", {{"version", std::string(version)}});
    auto const signal = attend(attended);
    sd_notify(0, "STOPPING=1");
    log(Severity::notice, "stopping", {{"signal", std::to_string(signal)}});
}

}  // namespace vfmgr
