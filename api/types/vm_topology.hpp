// SPDX-License-Identifier: Apache-2.0
// A VM's GPUs and NICs: how near they are on the host, and how near the VM finds them. Values; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/host_tree.hpp"

namespace vfmgr {

// A GPU, VF or PF of the host that is in the VM's persistent XML, or in the VM if that has none.
struct VmDevice {
    HostDeviceKind kind = HostDeviceKind::gpu;
    PciAddress pci;                         // on the host
    std::optional<int> numa_node{};         // the host's
    std::optional<std::string> in_guest{};  // now, or at its next start; as VmHostdev.in_guest
    std::optional<std::string> proposed{};  // absent: it stays where it is
    bool operator==(VmDevice const&) const = default;
};

struct VmPair {
    PciAddress gpu, nic;
    PciDistance on_host = PciDistance::unknown;
    PciDistance in_guest = PciDistance::unknown;  // what the VM finds
    PciDistance proposed = PciDistance::unknown;  // what it would find
    bool operator==(VmPair const&) const = default;
};

struct VmTopology {
    std::string vm;
    std::string vm_uuid;
    std::vector<VmDevice> devices;
    std::vector<VmPair> pairs;
    bool placed = false;  // its XML has places that vfmgr gave
    std::string xml;      // controllers and addresses of the proposal; empty: there is none
    std::vector<std::string> notes;
    bool operator==(VmTopology const&) const = default;
};

extern template struct Json<VmTopology>;

}  // namespace vfmgr
