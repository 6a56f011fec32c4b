// SPDX-License-Identifier: Apache-2.0
// One look for all who asked before it began. To describe a hundred VMs libvirtd takes a second of
// CPU, and when a host is put right, eight PFs ask at once. Whoever asks during a look waits for
// the next one, since what it is about to do depends on what happened until now. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

class SharedLook {
  public:
    using Look = std::function<Result<HypervisorView>()>;

    // Runs `look` here, or returns what another caller's found that began later than this call.
    [[nodiscard]] Result<HypervisorView> ask(Look const& look);
    // How many callers the next look will serve.
    [[nodiscard]] std::size_t waiting() const;

  private:
    struct Round {
        std::size_t callers = 0;
        std::optional<Result<HypervisorView>> found;
    };

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::shared_ptr<Round> next_;  // not begun yet; empty: nobody waits
    bool looking_ = false;
};

}  // namespace vfmgr
