// SPDX-License-Identifier: Apache-2.0
// The daemon, from its two seams to its sockets. Returns on SIGTERM or SIGINT; reloads on SIGHUP.
#pragma once

#include <functional>
#include <mutex>

#include "service/reload.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/proof/host/responder.hpp"

namespace vfmgr {

// After SIGTERM, waiting clients get their answer within this time, or a refusal.
inline constexpr std::chrono::seconds last_answers_time{2};
// Operations then have this long to end. A kernel step that still runs after that has a time limit
// of its own. The unit's TimeoutStopSec is longer than both.
inline constexpr std::chrono::seconds stop_patience{20};

// The third seam, beside kernel and hypervisor: how VMs connect, and what is checked about them.
struct GuestSeam {
    verify::Responder::CheckPeer check_peer;
    // Passes the VMs' requests to the handler.
    std::function<Result<void>(http::Server&, http::Handler)> listen;
};
// Announces news from libvirt: rung by main's callback on libvirt's thread, received by run().
class Bell {
  public:
    void ring() {
        std::lock_guard const lock(mutex_);
        rung_at_ = std::chrono::system_clock::now();
        if (notify_) notify_();
    }
    // Can be compared with the times at which libvirt's views were read.
    [[nodiscard]] Time rung_at() const {
        std::lock_guard const lock(mutex_);
        return rung_at_;
    }
    void on_ring(std::function<void()> notify) {
        std::lock_guard const lock(mutex_);
        notify_ = std::move(notify);
    }

  private:
    mutable std::mutex mutex_;
    std::function<void()> notify_;
    Time rung_at_{};
};

// `load` reads the configuration again, on SIGHUP. Call block_signals() before, while there is only
// one thread. Ends the process with status 0 if operations are left to recovery.
[[nodiscard]] Result<void> run(Config const& config, LoadConfig const& load, Kernel& kernel,
                               Hypervisor& hypervisor, GuestSeam const& guests, Bell& bell,
                               Clock& clock);

// At boot: restores VFs and links, before libvirt runs.
[[nodiscard]] Result<void> run_restore(Config const& config, Kernel& kernel, Clock& clock);

}  // namespace vfmgr
