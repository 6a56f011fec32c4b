// SPDX-License-Identifier: Apache-2.0
// What a VM may know of its host's PCI tree: where the functions are that it was given, and nothing
// of others. Any thread.
#pragma once

#include <vector>

#include "api/types/topology.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::checks {

// Only what tells where these functions are, of VFs their PFs, and the ports above them: of this
// machine, or below `root`. Blocks as files of sysfs do.
[[nodiscard]] Facts collect_places(std::string const& root, std::vector<VmHostdev> const& given);
// Pure. Without those that libvirt has not placed, or that the machine has not.
[[nodiscard]] HostTopology lent_topology(Machine const& host, std::vector<VmHostdev> const& given);

}  // namespace vfmgr::checks
