// SPDX-License-Identifier: Apache-2.0
// One observation for all callers that came before it began. To describe a hundred VMs libvirtd
// takes a second of CPU, and when a host is repaired, eight PFs need one at once. A caller that
// comes during an observation waits for the next one, since what it is about to do depends on what
// happened until now. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

class SharedObservation {
  public:
    using Observe = std::function<Result<HypervisorView>()>;

    // Runs `observe` here, or returns another caller's result that began later than this call.
    [[nodiscard]] Result<HypervisorView> ask(Observe const& observe);
    // The number of callers that the next observation will serve.
    [[nodiscard]] std::size_t waiting() const;

  private:
    struct Round {
        std::size_t callers = 0;
        std::optional<Result<HypervisorView>> found;
    };

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::shared_ptr<Round> next_;  // not begun yet; empty: no caller waits
    bool observing_ = false;
};

}  // namespace vfmgr
