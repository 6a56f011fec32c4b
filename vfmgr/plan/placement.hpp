// SPDX-License-Identifier: Apache-2.0
// Which PF's VF goes with which GPU, so that their traffic passes the fewest bridges. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "api/types/topology.hpp"

namespace vfmgr {

// A PF that VFs can be taken of.
struct NearNic {
    PciPlace place;
    std::size_t free_vfs = 0;
};

// In the order of the GPUs: the number of its NIC in the given list. Absent: no VF was left for it.
using Placement = std::vector<std::optional<std::size_t>>;

// The best choice for all of the GPUs together, since a job is as fast as its slowest pair: as many
// GPUs as possible get a VF; then as few pairs as possible are unknown, then SYS, NODE, PHB, PXB;
// then as few GPUs as possible share a PF. Equal input gives an equal choice.
[[nodiscard]] Placement place_gpus(std::vector<PciPlace> const& gpus,
                                   std::vector<NearNic> const& nics);

}  // namespace vfmgr
