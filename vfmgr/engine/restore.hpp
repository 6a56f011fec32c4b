// SPDX-License-Identifier: Apache-2.0
// Restores at boot, before libvirtd and without libvirt: VFs, settings, bindings, links and
// addresses of the desired state and its attachments, RDMA links too, so that a VM finds its VF
// when libvirt starts it.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/engine/control.hpp"
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {

// Restores one PF. Returns what was done, or why not. `requested_by` is recorded in its operations.
[[nodiscard]] Result<std::string> restore_pf(Seams const& seams, PciAddress const& pf,
                                             std::string const& requested_by);

// Returns one sentence for each PF and each RDMA link: what was done, or why not. One failure does
// not stop the others.
[[nodiscard]] Result<std::vector<std::string>> restore(Kernel& kernel, Control& control,
                                                       Clock& clock,
                                                       TrustedNetdevs const& trusted_netdevs = {});

}  // namespace vfmgr
