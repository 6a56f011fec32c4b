// SPDX-License-Identifier: Apache-2.0
// How fast one VM asks its host: somewhat slower than the host allows it (GuestPlaneLimits), since
// what comes faster is refused, and a refusal ends a test. Any thread.
#pragma once

#include <mutex>

#include "api/types/time.hpp"

namespace vfmgr::guest {

class Pace {
  public:
    // So many at once after a pause, then so many a second.
    struct Limit {
        double burst = 1;  // at least 1
        double per_second = 1;
    };
    explicit Pace(Limit limit);
    // When the next may begin that asks now: `now`, or later. Each call is one more turn.
    [[nodiscard]] Deadline turn(Deadline now);
    // Takes a turn, and waits for it.
    void await();
    // The host did not count the last.
    void give_back();

  private:
    Deadline::duration const interval_;
    Deadline::duration const saved_max_;
    std::mutex mutex_;
    Deadline next_{};
};

}  // namespace vfmgr::guest
