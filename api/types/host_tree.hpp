// SPDX-License-Identifier: Apache-2.0
// A host's GPUs and SR-IOV NICs on its PCI tree, and which NIC's VF goes with which GPU. Values;
// any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/topology.hpp"

namespace vfmgr {

enum class HostDeviceKind { gpu, nic };
template <>
inline constexpr std::array<EnumName<HostDeviceKind>, 2> enum_names<HostDeviceKind> = {
    {{HostDeviceKind::gpu, "gpu"}, {HostDeviceKind::nic, "nic"}}};

struct HostDevice {
    HostDeviceKind kind = HostDeviceKind::gpu;
    std::string name;  // a NIC's netdev; empty: it has none
    std::uint16_t vendor = 0, device = 0;
    PciPlace place;
    bool operator==(HostDevice const&) const = default;
};

// A GPU, and the PF to take a VF of for the VM that has it.
struct GpuPair {
    PciAddress gpu;
    std::optional<PciAddress> pf;  // absent: no PF has a VF left
    PciDistance distance = PciDistance::unknown;
    bool operator==(GpuPair const&) const = default;
};

struct HostTree {
    std::vector<HostDevice> devices;  // by address
    std::vector<GpuPair> pairs;       // the best for all GPUs together
    // Settings that block direct access between a GPU and a NIC, or make it unsafe: ACS.
    std::vector<std::string> notes;
    bool operator==(HostTree const&) const = default;
};

extern template struct Json<HostTree>;

}  // namespace vfmgr
