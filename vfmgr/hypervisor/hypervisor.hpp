// SPDX-License-Identifier: Apache-2.0
// The seam to libvirt. Implementations: LibvirtHypervisor and tests' FakeHypervisor. Called from
// operation threads; the caller holds the VM's claim for perform().
#pragma once

#include <optional>
#include <string>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// nullopt: every domain; otherwise one UUID.
using HypervisorScope = std::optional<std::string>;

class Hypervisor {
  public:
    virtual ~Hypervisor() = default;
    // Observes all domains, live and persistent XML. When libvirt can't be queried: an Error
    // (unavailable).
    [[nodiscard]] virtual Result<HypervisorView> observe(HypervisorScope const& scope) = 0;
    // Attach: live and/or config, done when the live XML shows the alias. Detach: waits for
    // libvirt's device-removed event, re-reads the live XML, retries the unplug request while the
    // guest is slow, and edits the config last.
    [[nodiscard]] virtual Result<Observed> perform(HypervisorStep const& step,
                                                   Deadline deadline) = 0;
    // Waits for libvirt's own job on the domain to end (a request of a killed vfmgrd may still be
    // executing in libvirtd). Recovery calls it before it observes.
    [[nodiscard]] virtual Result<void> settle(std::string const& vm_uuid, Deadline deadline) = 0;
};

}  // namespace vfmgr
