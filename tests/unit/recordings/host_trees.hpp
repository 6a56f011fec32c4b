// SPDX-License-Identifier: Apache-2.0
// Hosts' PCI trees out of recordings, in whatever form they were recorded, and what those say of
// the distances in them: by ways that are not distance()'s, which goes by the ports on each way.
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
#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks::recordings {

// A GPU, another accelerator or a NIC, and where sysfs would show it.
struct TreeFunction {
    std::string path;  // below /sys/devices: "pci0000:16/0000:16:01.0/0000:17:00.0"
    unsigned class_code = 0;
    int node = -1;
    std::vector<Function> ports{};  // of those on the way whose ids the recording tells
    [[nodiscard]] PciAddress address() const;
};
// These alone, as their host's sysfs would have shown them.
[[nodiscard]] Facts host_of(std::vector<TreeFunction> const& functions);

// What lies between two functions, the lower address first.
using Pair = std::pair<PciAddress, PciAddress>;
using Distances = std::map<Pair, PciDistance>;
[[nodiscard]] Pair pair_of(PciAddress const& one, PciAddress const& other);
// Of all pairs.
[[nodiscard]] Distances distances(
    std::vector<PciAddress> const& functions,
    std::function<PciDistance(PciAddress const&, PciAddress const&)> const& between);

// Asks the product for each pair, through its own reading of sysfs, and fails the test where it
// says otherwise; the same of each GPU's nearest NIC and of GPUDirect by NCCL's rule; and has it
// write NCCL's file for a VM with these functions, which has to give the same distances. What was
// compared: "GPU-NIC 8 PIX, 56 SYS; others 56 SYS".
[[nodiscard]] std::string compared(Facts const& host, Distances const& expected);
// The same of distances as NCCL has them, on the host itself and in a VM with these functions.
[[nodiscard]] std::string compared_as_nccl(Facts const& host, Distances const& expected);

// --- bridges, as lspci, the kernel's log and configuration spaces number the buses behind them ---

struct Bridge {
    PciAddress address;
    unsigned secondary = 0, subordinate = 0;
};
// The way of a function to its host bridge, as sysfs would write it.
[[nodiscard]] std::string path_by_buses(std::vector<Bridge> const& bridges,
                                        PciAddress const& function);
// Two functions behind one bridge are PIX when there is one bridge more at most before each, which
// is a port of the switch that they share. Nothing when they share no bridge.
[[nodiscard]] std::optional<PciDistance> below_bridges(std::vector<Bridge> const& bridges,
                                                       PciAddress const& one,
                                                       PciAddress const& other);
// Where there is no common bridge: by the names of the host bridges and the nodes, below 0 unknown.
struct Root {
    std::string bus;  // "0000:16"
    int node = -1;
};
[[nodiscard]] PciDistance above_bridges(Root const& one, Root const& other);

// --- NCCL's XML ---

// A function as NCCL places it: which switches it is below, and which CPU.
struct NcclFunction {
    TreeFunction placed;  // ports, which such a file leaves out, are made up
    std::string cpu;
    std::set<std::string> switches;
};
// As NCCL does it before it looks for ways (src/graph/topo.cc, ncclTopoFlattenBcmSwitches): what is
// below the lower level of a Broadcom switch comes to be below the upper one.
[[nodiscard]] std::string flattened(std::string const& xml);
// In the file's order.
[[nodiscard]] std::vector<NcclFunction> functions_of_nccl(std::string const& xml);
// As NCCL has it, which knows no NODE: PHB is all of one CPU's. Of one switch PIX, of more PXB
// (NCCL, src/graph/paths.cc: a link from switch to switch makes a path PXB).
[[nodiscard]] PciDistance nccl_distance(NcclFunction const& one, NcclFunction const& other);

}  // namespace vfmgr::checks::recordings
