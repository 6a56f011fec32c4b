// SPDX-License-Identifier: Apache-2.0
// NCCL, as far as it decides about GPUDirect: its settings, its rule of distance, and the file that
// tells it of a host's PCI tree which the VM does not show. Facts: NCCL 2.27, src/graph. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/topology.hpp"

namespace vfmgr::guest::gpu {

// NCCL_… by name: of the environment, else of ~/.nccl.conf, else of /etc/nccl.conf.
using NcclSettings = std::map<std::string, std::string, std::less<>>;
// A file's lines "NAME=VALUE"; "#" begins a comment. Values that are there already stay.
void add_nccl_file(std::string_view text, NcclSettings& settings);

// The farthest distance at which NCCL uses GPUDirect; PXB unless NCCL_NET_GDR_LEVEL says otherwise.
// A word that NCCL does not know is an error: NCCL takes no notice of it.
[[nodiscard]] Result<PciDistance> gdr_level(NcclSettings const& settings);
// What lies between the two as NCCL has it: PIX, PXB, PHB or SYS. Switches of Broadcom's that show
// two levels and are one count once (ncclTopoFlattenBcmSwitches), where `nvidia-smi topo` says PXB.
// Host bridges of one NUMA node are one CPU's, PHB; all that nobody tells a node of has another
// CPU.
[[nodiscard]] PciDistance nccl_distance(PciPlace const& one, PciPlace const& other);
[[nodiscard]] bool within(PciDistance as_nccl, PciDistance level);

// Where NCCL looks for such a file when NCCL_TOPO_FILE names none.
inline constexpr char const* default_topology_file =
    "/var/run/nvidia-topologyd/virtualTopology.xml";

// A GPU or NIC of this VM, and where it is on the host.
struct PlacedFunction {
    PciAddress here;
    std::uint32_t class_code = 0;  // 0x030200
    PciPlace host;
};
// `affinities` are the VM's CPUs by NUMA node, masks of equal length as in sysfs ("ffff,ffffffff").
// When the VM has not as many nodes as these functions have on the host, each node has all CPUs.
[[nodiscard]] std::string topology_file(std::vector<PlacedFunction> const& functions,
                                        std::vector<std::string> const& affinities);

}  // namespace vfmgr::guest::gpu
