// SPDX-License-Identifier: Apache-2.0
// Steps underway, by what they change. A step goes on when the front that asked for it has ended;
// the next front must neither observe nor change that part of the host in the middle of it. Shared
// by all connections; any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "api/os/handle.hpp"
#include "api/types/time.hpp"
#include "service/broker/messages.hpp"

namespace vfmgr::broker {

// A PF or the host's network; or a VM, by its UUID.
using Subject = std::variant<KernelSubject, std::string>;
[[nodiscard]] Subject subject_of_step(Step const& step);
// What the request changes or observes; nothing for one that is about all of the host.
[[nodiscard]] std::optional<Subject> subject_of_request(Request const& request);

class StepsUnderway {
  public:
    // Waits until no step of another connection changes the subject. False at the deadline.
    [[nodiscard]] bool await_others(Subject const& subject, std::uint64_t connection,
                                    Deadline deadline);
    // The step is underway until the result goes.
    [[nodiscard]] Held begin(Subject const& subject, std::uint64_t connection);

  private:
    std::mutex mutex_;  // guards the members below
    std::condition_variable ended_;
    std::multimap<Subject, std::uint64_t> steps_;
};

}  // namespace vfmgr::broker
