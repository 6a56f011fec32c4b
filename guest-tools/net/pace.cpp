// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/pace.hpp"

#include <poll.h>

#include <algorithm>

namespace vfmgr::guest {
namespace {

Deadline::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Pace::Pace(Limit limit)
    : interval_(duration_of(1 / limit.per_second)),
      saved_max_(duration_of((limit.burst - 1) / limit.per_second)) {}

// Turns are `interval_` apart. A pause saves up its turns for a burst, up to saved_max_.
Deadline Pace::turn(Deadline now) {
    std::lock_guard const lock(mutex_);
    auto const mine = std::max(next_, now - saved_max_);
    next_ = mine + interval_;
    return std::max(mine, now);
}

void Pace::free() {
    std::lock_guard const lock(mutex_);
    next_ -= interval_;
}

// Waits for time only: nothing makes a turn come earlier.
void Pace::await() {
    auto const until = turn(std::chrono::steady_clock::now());
    while (true) {
        auto const left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return;
        ::poll(nullptr, 0, static_cast<int>(left.count()));
    }
}

}  // namespace vfmgr::guest
