// SPDX-License-Identifier: Apache-2.0
// Where a GPU is: how large its window for NICs is, and which NIC is nearest. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "api/types/gpu.hpp"
#include "vfmgr/checks/machine.hpp"
#include "vfmgr/checks/pci_resource.hpp"

namespace vfmgr::checks {

// NVIDIA's BAR1, whatever its number is; absent where the device's regions can't be seen.
[[nodiscard]] std::optional<PciRegion> bar1_of(Machine const& machine, PciDevice const& gpu);

// Functions with RDMA in hardware; of PFs and VFs on one machine, the PFs.
[[nodiscard]] std::vector<PciDevice const*> rdma_nics(std::vector<PciDevice> const& pci);

[[nodiscard]] PciPlace place_of(Machine const& machine, PciDevice const& device);
[[nodiscard]] PciDistance distance(Machine const& machine, PciDevice const& one,
                                   PciDevice const& other);
// Null without a NIC.
[[nodiscard]] PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu);

}  // namespace vfmgr::checks
