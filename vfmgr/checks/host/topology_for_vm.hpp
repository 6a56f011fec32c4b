// SPDX-License-Identifier: Apache-2.0
// What a VM may know of its host's PCI tree: the places of the functions attached to it, and
// nothing of others. Any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/topology.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// Pure. Returns what on the host blocks the direct path between a GPU and a NIC, or makes it
// unsafe.
[[nodiscard]] std::vector<std::string> blocked_paths(Machine const& host);
// Pure. Leaves out functions that libvirt has not placed, or that the machine lacks.
[[nodiscard]] HostTopology topology_for_vm(Machine const& host,
                                           std::vector<VmHostdev> const& given);

}  // namespace vfmgr::checks
