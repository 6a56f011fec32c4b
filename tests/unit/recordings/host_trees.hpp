// SPDX-License-Identifier: Apache-2.0
// Hosts' PCI trees from recordings, in whatever form they were recorded, and the distances that
// they state: computed in other ways than distance()'s, which goes by the ports on each path.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/types/topology.hpp"
#include "tests/unit/recordings/recordings.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks::recordings {

// A GPU, another accelerator or a NIC, and where sysfs would show it.
struct TreeFunction {
    std::string path;  // below /sys/devices: "pci0000:16/0000:16:01.0/0000:17:00.0"
    unsigned class_code = 0;
    int node = -1;
    std::vector<Function> ports{};  // the ports on the path whose ids were recorded
    [[nodiscard]] PciAddress address() const;
};
// Builds facts of these alone, as their host's sysfs would have shown them.
[[nodiscard]] Facts host_of(std::vector<TreeFunction> const& functions);

// Two functions, the lower address first; maps to what lies between them.
using Pair = std::pair<PciAddress, PciAddress>;
using Distances = std::map<Pair, PciDistance>;
[[nodiscard]] Pair pair_of(PciAddress const& one, PciAddress const& other);
// For all pairs.
[[nodiscard]] Distances distances(
    std::vector<PciAddress> const& functions,
    std::function<PciDistance(PciAddress const&, PciAddress const&)> const& between);

// Queries the product for each pair, through its own reading of sysfs, and fails the test where its
// result differs; does the same for each GPU's nearest NIC and for GPUDirect by NCCL's rule; and
// has it write NCCL's file for a VM with these functions, which has to give the same distances.
// Returns what was compared: "GPU-NIC 8 PIX, 56 SYS; others 56 SYS".
[[nodiscard]] std::string compared(Facts const& host, Distances const& expected);
// Same for distances as NCCL has them, on the host itself and in a VM with these functions.
[[nodiscard]] std::string compared_as_nccl(Facts const& host, Distances const& expected);

// --- bridges, as lspci, the kernel's log and configuration spaces number the buses behind them ---

struct Bridge {
    PciAddress address;
    unsigned secondary = 0, subordinate = 0;
};
// Returns a function's path to its host bridge, as sysfs would write it.
[[nodiscard]] std::string path_by_buses(std::vector<Bridge> const& bridges,
                                        PciAddress const& function);
// Two functions behind one bridge are PIX when there is at most one more bridge before each, which
// is a port of the switch that they share. nullopt when they share no bridge.
[[nodiscard]] std::optional<PciDistance> below_bridges(std::vector<Bridge> const& bridges,
                                                       PciAddress const& one,
                                                       PciAddress const& other);
// Used where there is no common bridge: compares host bridges' names and nodes; below 0: unknown.
struct Root {
    std::string bus;  // "0000:16"
    int node = -1;
};
[[nodiscard]] PciDistance above_bridges(Root const& one, Root const& other);

// --- NCCL's XML ---

// A function as NCCL places it: the switches above it, and its CPU.
struct NcclFunction {
    TreeFunction placed;  // ports, which such a file leaves out, are made up
    std::string cpu;
    std::set<std::string> switches;
};
// Does what NCCL does before it computes paths (src/graph/topo.cc, ncclTopoFlattenBcmSwitches):
// moves what is below the lower level of a Broadcom switch to below the upper one.
[[nodiscard]] std::string flattened(std::string const& xml);
// In the file's order.
[[nodiscard]] std::vector<NcclFunction> functions_of_nccl(std::string const& xml);
// Distance as NCCL has it, without NODE: PHB is anything on one CPU. One switch is PIX, more are
// PXB (NCCL, src/graph/paths.cc: a link from switch to switch makes a path PXB).
[[nodiscard]] PciDistance nccl_distance(NcclFunction const& one, NcclFunction const& other);

}  // namespace vfmgr::checks::recordings
