// SPDX-License-Identifier: Apache-2.0
// The parts of NCCL that decide about GPUDirect: its settings, its distance rule, and the file that
// describes to it a host's PCI tree, which the VM does not show (GPUDIRECT.md#nccl). Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/topology.hpp"

namespace vfmgr::guest::gpu {

// NCCL_… by name: from the environment, else from ~/.nccl.conf, else from /etc/nccl.conf. The file
// that NCCL_CONF_FILE puts in place of the first is not read.
using NcclSettings = std::map<std::string, std::string, std::less<>>;
// Adds a file's lines "NCCL_NAME=VALUE"; lines that begin with "#" are comments. Existing values
// stay.
void add_nccl_file(std::string_view text, NcclSettings& settings);

// Returns the farthest distance at which NCCL uses GPUDirect; PXB unless NCCL_NET_GDR_LEVEL sets
// another. An unknown value is an error, because NCCL ignores it. So are NVL, NVB, C2C, P2C and
// PXN, which NCCL knows: none of them is a PCI distance.
[[nodiscard]] Result<PciDistance> gdr_level(NcclSettings const& settings);
// Returns the distance between the two by NCCL's rule: PIX, PXB, PHB or SYS. Broadcom switches that
// show two levels and are one count once (ncclTopoFlattenBcmSwitches), where `nvidia-smi topo`
// reports PXB. Host bridges of one NUMA node belong to one CPU, PHB; all functions without a known
// node belong to another CPU.
[[nodiscard]] PciDistance nccl_distance(PciPlace const& one, PciPlace const& other);
[[nodiscard]] bool within(PciDistance as_nccl, PciDistance level);

// Where NCCL reads such a file when NCCL_TOPO_FILE names none.
inline constexpr char const* default_topology_file =
    "/var/run/nvidia-topologyd/virtualTopology.xml";

// A GPU or NIC of this VM, and its place on the host.
struct PlacedFunction {
    PciAddress here;
    std::uint32_t class_code = 0;  // 0x030200
    PciPlace host;
};
// `affinities` are the VM's CPUs by NUMA node, masks of equal length as in sysfs ("ffff,ffffffff").
// Unless the VM has as many nodes as these functions have on the host, each node has all CPUs; the
// one of functions whose node is unknown always has.
[[nodiscard]] std::string topology_file(std::vector<PlacedFunction> const& functions,
                                        std::vector<std::string> const& affinities);

}  // namespace vfmgr::guest::gpu
