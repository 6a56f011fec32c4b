// SPDX-License-Identifier: Apache-2.0
// How fast one VM queries its host: somewhat slower than the host's limit (GuestPlaneLimits), since
// the host refuses faster requests, and a refusal ends a test. Any thread.
#pragma once

#include <mutex>

#include "api/types/time.hpp"

namespace vfmgr::guest {

class Pace {
  public:
    // This many at once after a pause, then this many per second.
    struct Limit {
        double burst = 1;  // at least 1
        double per_second = 1;
    };
    explicit Pace(Limit limit);
    // Returns when a request made now may begin: `now`, or later. Each call is one more turn.
    [[nodiscard]] Deadline turn(Deadline now);
    // Takes a turn and waits for it.
    void await();
    // Cancels the last turn, which the host did not count.
    void free();

  private:
    Deadline::duration const interval_;
    Deadline::duration const saved_max_;
    std::mutex mutex_;
    Deadline next_{};
};

}  // namespace vfmgr::guest
