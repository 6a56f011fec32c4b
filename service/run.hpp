// SPDX-License-Identifier: Apache-2.0
// The daemon, from its two seams to its sockets. Returns when told to stop by SIGTERM or SIGINT.
#pragma once

#include <functional>
#include <mutex>

#include "guest-tools/verify/responder.hpp"
#include "service/config.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"

namespace vfmgr {

// After SIGTERM whoever waits for an answer gets it within this time, or a refusal.
inline constexpr std::chrono::seconds last_answers_time{2};
// Operations then have this long to end. The step of the kernel that one is at then has
// its own time. TimeoutStopSec of the unit is more than both.
inline constexpr std::chrono::seconds stop_patience{20};

// The third seam beside kernel and hypervisor: how VMs call, and what is asked about them.
struct GuestSeam {
    verify::Responder::CheckPeer check_peer;
    // Their requests go to the handler.
    std::function<Result<void>(http::Server&, http::Handler)> listen;
};
// libvirt has something new: rung by main's callback on libvirt's thread, heard by run().
class Bell {
  public:
    void ring() {
        std::lock_guard const lock(mutex_);
        rung_at_ = std::chrono::system_clock::now();
        if (heard_) heard_();
    }
    // As libvirt's views say when they were read.
    [[nodiscard]] Time rung_at() const {
        std::lock_guard const lock(mutex_);
        return rung_at_;
    }
    void on_ring(std::function<void()> heard) {
        std::lock_guard const lock(mutex_);
        heard_ = std::move(heard);
    }

  private:
    mutable std::mutex mutex_;
    std::function<void()> heard_;
    Time rung_at_{};
};

// Ends the process (0) when operations are left to recovery.
[[nodiscard]] Result<void> run(Config const& config, Kernel& kernel, Hypervisor& hypervisor,
                               GuestSeam const& guests, Bell& bell, Clock& clock);

// Boot: puts VFs and links back, before libvirt runs.
[[nodiscard]] Result<void> run_restore(Config const& config, Kernel& kernel, Clock& clock);

}  // namespace vfmgr
