// SPDX-License-Identifier: Apache-2.0
#include "service/attend.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include <ctime>

#include "service/auth/token_rules.hpp"
#include "service/log.hpp"

namespace vfmgr {
namespace {

sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const one : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, one);
    return set;
}

void save_token_uses(Attended const& attended, Time now) {
    if (auto unwritten = attended.token_uses.take_unwritten(now); !unwritten.empty())
        attended.engine.save_token_uses(std::move(unwritten));
}

void warn_of_ends(Attended const& attended) {
    auto const tokens = attended.engine.snapshot().tokens;
    for (auto const& [sha256, published] : *tokens) {
        auto const token = attended.token_uses.with_last_use(published);
        if (sha256 != token.sha256 || !ends_soon(token, attended.clock.now())) continue;
        log(Severity::warning, "a token in use expires soon",
            {{"token", token.id},
             {"description", token.description},
             {"expires_at", to_rfc3339(*token.expires_at)},
             {"last_used_at", to_rfc3339(token.last_use->at)},
             {"last_used_from", token.last_use->from},
             {"remedy", "vfctl token rotate " + token.id}});
    }
}

// systemd compares the time with those of its own jobs (sd_notify(3)).
void reload(Reload& reload) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    auto const microseconds = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
    sd_notify(0, fmt::format("RELOADING=1\nMONOTONIC_USEC={}", microseconds).c_str());
    reload.run();
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

void do_what_is_due(Attended const& attended) {
    // Only a control thread that makes progress feeds the watchdog.
    attended.engine.control().post([](auto&) { sd_notify(0, "WATCHDOG=1"); });
    attended.trail.write_minutes(attended.clock.now());
    attended.engine.end_expired();
    attended.engine.try_store_again();
    save_token_uses(attended, attended.clock.now());
    // Tokens and certificates end while their connections are open.
    attended.server.cut(http::lapsed);
}

void do_what_is_due_daily(Attended const& attended) {
    attended.engine.prune();
    attended.reload.look_after_certificate();
    warn_of_ends(attended);
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
        if (got == SIGTERM || got == SIGINT) {
            save_token_uses(attended, Time::max());
            return got;
        }
        if (got == SIGHUP) reload(attended.reload);
        do_what_is_due(attended);  // after a signal, too: many of them must not starve the watchdog
        if (attended.clock.steady_now() < daily_at) continue;
        daily_at = attended.clock.steady_now() + std::chrono::hours(24);
        do_what_is_due_daily(attended);
    }
}

}  // namespace vfmgr
