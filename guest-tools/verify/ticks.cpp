// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/ticks.hpp"

#include <cmath>

namespace vfmgr::verify {
namespace {

constexpr double disagreement_max = 0.02;

// Returns 0 when the counter stands still or goes back, as it may when CPUs have separate counters.
double rate_between(Mark const& from, Mark const& to) {
    if (to.ticks <= from.ticks || to.nanoseconds <= from.nanoseconds) return 0;
    return static_cast<double>(to.nanoseconds - from.nanoseconds) /
           static_cast<double>(to.ticks - from.ticks);
}

}  // namespace

std::optional<double> tick_nanoseconds(std::span<Mark const> marks) {
    if (marks.size() < 3) return std::nullopt;
    for (std::size_t i = 1; i < marks.size(); ++i)
        if (rate_between(marks[i - 1], marks[i]) == 0) return std::nullopt;
    auto const& middle = marks[marks.size() / 2];
    auto const whole = rate_between(marks.front(), marks.back());
    auto const apart =
        std::abs(rate_between(marks.front(), middle) - rate_between(middle, marks.back()));
    return apart <= disagreement_max * whole ? std::optional(whole) : std::nullopt;
}

}  // namespace vfmgr::verify
