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
// then as few GPUs as possible share a PF. Equal input gives an equal choice. Up to 128 GPUs.
[[nodiscard]] Placement place_gpus(std::vector<PciPlace> const& gpus,
                                   std::vector<NearNic> const& nics);

// The same for the requests of one VM, of which not each can get every VF. Numbers are those of
// elements in the given lists.

struct GpuOfVm {
    PciPlace place;
    std::size_t near_vfs = 0;  // that it has already
};
struct PfForVm {
    PciPlace place;
    std::size_t vfs_of_vm = 0;
};
// Free VFs of one PF that the same requests can get.
struct VfOffer {
    std::size_t pf = 0;
    std::size_t count = 0;
    std::vector<std::size_t> requests;
};
struct VfPlace {
    std::size_t gpu = 0;
    std::size_t offer = 0;
    bool operator==(VfPlace const&) const = default;
};

// In the order of the requests. As many as possible get a VF; then no GPU gets another one while
// one has fewer; then the order is that of place_gpus(), where the VM's other VFs count as sharing
// their PF. Up to 128 requests.
[[nodiscard]] std::vector<std::optional<VfPlace>> place_requests(std::vector<GpuOfVm> const& gpus,
                                                                 std::vector<PfForVm> const& pfs,
                                                                 std::vector<VfOffer> const& offers,
                                                                 std::size_t requests);

}  // namespace vfmgr
