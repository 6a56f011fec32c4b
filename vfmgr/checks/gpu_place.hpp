// SPDX-License-Identifier: Apache-2.0
// Where a GPU is: the size of its window for NICs, and the nearest NIC. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "api/types/topology.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/machine/machine.hpp"
#include "vfmgr/machine/pci_config.hpp"

namespace vfmgr::checks {

// Returns NVIDIA's BAR1, whatever its number; nullopt if the device's regions can't be read.
[[nodiscard]] std::optional<PciRegion> bar1_of(Machine const& machine, PciDevice const& gpu);

// Functions with RDMA in hardware, without VFs whose PF is on the same machine.
[[nodiscard]] std::vector<PciDevice const*> rdma_nics(std::vector<PciDevice> const& pci);

[[nodiscard]] PciPlace place_of(Machine const& machine, PciDevice const& device);
[[nodiscard]] PciDistance distance(Machine const& machine, PciDevice const& one,
                                   PciDevice const& other);
// Returns null without a NIC.
[[nodiscard]] PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu);

// What a VM may know of its host's PCI tree: the places of the functions attached to it, and
// nothing of others. Any thread.

// Reads only the places of these functions, the PFs of VFs, and the ports above them: on this
// machine, or below `root`. Blocks as files of sysfs do.
[[nodiscard]] Facts collect_places(std::string const& root, std::vector<VmHostdev> const& given);
// Pure. Leaves out functions that libvirt has not placed, or that the machine lacks.
[[nodiscard]] HostTopology topology_for_vm(Machine const& host,
                                           std::vector<VmHostdev> const& given);

}  // namespace vfmgr::checks
