// SPDX-License-Identifier: Apache-2.0
// The daemon, from its two seams to its sockets. Returns on SIGTERM or SIGINT; reloads on SIGHUP.
#pragma once

#include <functional>

#include "service/bell.hpp"
#include "service/guest/link.hpp"
#include "service/reload.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr {

// After SIGTERM, waiting clients get their answer within this time, or a refusal.
inline constexpr std::chrono::seconds last_answers_time{2};
// Operations then have this long to end. A kernel step that still runs after that has a time limit
// of its own. The unit's TimeoutStopSec is longer than both.
inline constexpr std::chrono::seconds stop_patience{20};

// What run() acts on and observes. The facts are the doctor's, and those that name other owners of
// PFs; both are read on request.
struct HostSeams {
    Kernel& kernel;
    Hypervisor& hypervisor;
    guestd::Link::Connect connect_guestd;  // the third seam: VMs connect there
    std::function<checks::Facts()> collect_host;
    std::function<checks::Facts()> collect_owners;
};

// `load` reads the configuration again, on SIGHUP. Call block_signals() before, while there is only
// one thread. Ends the process with status 0 if operations are left to recovery.
[[nodiscard]] Result<void> run(Config const& config, LoadConfig const& load, HostSeams const& seams,
                               Bell& bell, Clock& clock);

// At boot: restores VFs and links, before libvirt runs.
[[nodiscard]] Result<void> run_restore(Config const& config, Kernel& kernel, Clock& clock);

}  // namespace vfmgr
