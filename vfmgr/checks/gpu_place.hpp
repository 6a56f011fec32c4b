// SPDX-License-Identifier: Apache-2.0
// Where a GPU is: the size of its window for NICs, and the nearest NIC. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "api/types/topology.hpp"
#include "vfmgr/machine/machine.hpp"
#include "vfmgr/machine/pci_config.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr::checks {

// Returns NVIDIA's BAR1, whatever its number; nullopt if the device's regions can't be read.
[[nodiscard]] std::optional<PciRegion> bar1_of(Machine const& machine, PciDevice const& gpu);

// Functions with RDMA in hardware, without VFs whose PF is on the same machine.
[[nodiscard]] std::vector<PciDevice const*> rdma_nics(Machine const& machine);

[[nodiscard]] PciDistance distance(Machine const& machine, PciDevice const& one,
                                   PciDevice const& other);
// Returns null without a NIC.
[[nodiscard]] PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu);

}  // namespace vfmgr::checks
