// SPDX-License-Identifier: Apache-2.0
// Every port of every RDMA device with what belongs to it: its NIC, its netdev, the addresses on
// it, and whether it is in use. For rules and for names. Views of a Machine that outlives them; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/machine/machine.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::checks {

struct RdmaPortView {
    MachineRdmaDevice const* device = nullptr;
    MachineRdmaPort const* port = nullptr;
    PciDevice const* pci = nullptr;         // its NIC; null for software
    MachineNetdev const* netdev = nullptr;  // its own, not the bond that it is in
    std::string netdev_name;                // also of a netdev that no longer exists
    std::string parent;                     // the RDMA device that this one was made from (SMI)
    bool software = false;                  // rxe, siw
    [[nodiscard]] bool ethernet() const { return port->link_layer() == "Ethernet"; }
    [[nodiscard]] bool infiniband() const { return port->link_layer() == "InfiniBand"; }
    [[nodiscard]] bool active() const { return port->state() == "ACTIVE"; }
};
[[nodiscard]] std::string name_of(RdmaPortView const& view);  // "mlx5_0/1", as `rdma link` has it
// Its folder in sysfs: "/sys/class/infiniband/mlx5_0/ports/1".
[[nodiscard]] std::string folder_of(RdmaPortView const& view);

// Software and hardware, SMI devices too. Empty if RDMA devices can't be read.
[[nodiscard]] std::vector<RdmaPortView> rdma_ports(Machine const& machine);
// Ports of NICs that carry data: without SMI devices.
[[nodiscard]] std::vector<RdmaPortView> nic_ports(Machine const& machine);

// True for iWARP, whose only GID is its MAC address.
[[nodiscard]] bool is_iwarp(Machine const& machine, MachineRdmaDevice const& device);
// "0000:0000:0000:0000:0000:ffff:c0a8:0101": the IPv4 address in it; else the IPv6 address.
[[nodiscard]] std::optional<IpAddress> gid_address(std::string_view gid);
[[nodiscard]] MachineNetdev const* find_netdev(Machine const& machine, std::string_view name);
// True for a switchdev netdev that represents the other end of a VF: "pf0vf1", "c1pf0vf1".
[[nodiscard]] bool is_representor(MachineNetdev const& netdev);
// The index of the VF that it represents.
[[nodiscard]] std::optional<std::uint16_t> represented_vf(MachineNetdev const& netdev);
// A PCI function's netdevs without representors.
[[nodiscard]] std::vector<MachineNetdev const*> netdevs_of(Machine const& machine,
                                                           PciAddress const& pci);
// VLANs, bonds and bridges on it.
[[nodiscard]] std::vector<std::string> uppers_of(Machine const& machine, std::string_view netdev);

[[nodiscard]] Known<std::vector<NetdevAddress>> addresses_of(Machine const& machine);
// Addresses of one netdev without link-local ones; empty if addresses can't be read.
[[nodiscard]] std::vector<NetdevAddress> addresses_on(Machine const& machine,
                                                      MachineNetdev const& netdev);

// Why the link is in use, in words; empty if it is not. It is in use if it has an address, is below
// another netdev, is in a bond or bridge, or VFs send through it; in a VM, if it was attached.
[[nodiscard]] std::string use_of(Machine const& machine, RdmaPortView const& view);

}  // namespace vfmgr::checks
