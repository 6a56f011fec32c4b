// SPDX-License-Identifier: Apache-2.0
// Where a VM's GPUs and VFs are on the host, where the VM finds them, and the places in its PCI
// tree at which it would find near what is near. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/vm_topology.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// A controller that placing adds to a VM's XML; addresses are those of <address type='pci'>.
struct GuestController {
    std::uint8_t index = 0;  // the bus that it provides
    std::string_view model;  // "pcie-switch-upstream-port"
    PciAddress at;
    std::optional<std::uint32_t> cell{};    // of an expander bus
    std::optional<std::uint32_t> number{};  // of an expander bus, in the VM: busNr
};
struct GuestPlace {
    PciAddress pci;  // on the host
    PciAddress guest;
    std::string in_guest;  // as VmHostdev.in_guest
};
struct GuestPlaces {
    std::vector<GuestController> controllers;  // each one's bus before those on it
    std::vector<GuestPlace> hostdevs;
};

// Both the answer's XML and what the hypervisor's step writes are made from this. Refuses what the
// VM's PCI tree has no room for.
[[nodiscard]] Result<GuestPlaces> guest_places(GuestPcie const& pcie, std::string const& vm,
                                               std::vector<PlacedHostdev> const& hostdevs);

// Marks the controllers that placing adds, with their index behind it.
inline constexpr std::string_view placed_alias = "ua-vfmgr-pcie-";
// <devices> with the controllers, and each <hostdev> with its address alone.
[[nodiscard]] std::string to_xml(GuestPlaces const& places);

// Which devices of the VM's persistent XML are to be placed: those that share a switch of the host
// with their other end, and those on a node of the host that a NUMA cell of the VM has. Refuses
// when that is nothing.
[[nodiscard]] Result<std::vector<PlacedHostdev>> hostdevs_to_place(HostView const& host,
                                                                   VmInfo const& vm);

[[nodiscard]] VmTopology vm_topology(HostView const& host, VmInfo const& vm);
// `back`: to where they were.
[[nodiscard]] Result<Plan> plan_placing(HostView const& host, std::string_view vm, bool back);

}  // namespace vfmgr
