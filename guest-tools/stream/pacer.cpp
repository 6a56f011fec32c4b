// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/pacer.hpp"

#include <algorithm>

namespace vfmgr::stream {

namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

// Splits off whole seconds: a stream of months neither accumulates rounding errors nor overflows.
Deadline Pacer::due(std::uint64_t packet) const {
    constexpr std::uint64_t second = 1'000'000'000;
    constexpr std::uint64_t never = 1'000'000'000;  // seconds: 31 years
    auto const cost = Wide{packet} * pace_.cost;
    auto const whole = cost / pace_.per_second;
    if (whole >= never) return start_ + std::chrono::seconds(never);
    auto const seconds = static_cast<std::uint64_t>(whole);
    // Rounds up: never earlier than the rate allows.
    auto const rest = (cost % pace_.per_second * second + pace_.per_second - 1) / pace_.per_second;
    return start_ + std::chrono::seconds(seconds) +
           std::chrono::nanoseconds(static_cast<std::uint64_t>(rest));
}

std::uint64_t Pacer::packets_in(std::chrono::milliseconds time) const {
    auto const amount = Wide{static_cast<std::uint64_t>(time.count())} * pace_.per_second / 1000;
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(amount / pace_.cost), 1);
}

void Pacer::count_sent(std::uint64_t first, std::uint64_t count, Deadline now) {
    ++lateness_.chunks;
    if (now < due(first + count)) return;
    auto const behind = std::chrono::duration_cast<std::chrono::microseconds>(now - due(first));
    ++lateness_.late;
    lateness_.late_max_us =
        std::max(lateness_.late_max_us, static_cast<std::uint64_t>(behind.count()));
}

}  // namespace vfmgr::stream
