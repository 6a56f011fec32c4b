// SPDX-License-Identifier: Apache-2.0
// Steps underway, by what they change. A step goes on when the front that asked for it has ended;
// the next front must neither observe nor change that part of the host in the middle of it. Shared
// by all connections; any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "api/os/handle.hpp"
#include "api/types/time.hpp"
#include "service/broker/messages.hpp"
#include "vfmgr/plan/step_subject.hpp"

namespace vfmgr::broker {

// What the request changes or observes; none of the host for one that is about all of it.
[[nodiscard]] StepSubject subject_of(Request const& request);

class StepsUnderway {
  public:
    // Waits until no step of another connection changes the subject. False at the deadline.
    [[nodiscard]] bool await_others(StepSubject const& subject, std::uint64_t connection,
                                    Deadline deadline);
    // The step is underway until the result goes.
    [[nodiscard]] Held begin(StepSubject const& subject, std::uint64_t connection);

  private:
    std::mutex mutex_;  // guards the members below
    std::condition_variable ended_;
    std::multimap<StepSubject, std::uint64_t> steps_;
};

}  // namespace vfmgr::broker
