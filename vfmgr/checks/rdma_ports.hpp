// SPDX-License-Identifier: Apache-2.0
// Every port of every RDMA device with what belongs to it: its NIC, its netdev, the addresses on
// it, and whether anybody uses it. For rules and for names. Views of a Machine that outlives them;
// any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/checks/machine.hpp"
#include "vfmgr/netlink/address.hpp"

namespace vfmgr::checks {

struct RdmaPortView {
    MachineRdmaDevice const* device = nullptr;
    MachineRdmaPort const* port = nullptr;
    PciDevice const* pci = nullptr;         // its NIC; of software, nothing
    MachineNetdev const* netdev = nullptr;  // its own, not the bond that this one is in
    std::string netdev_name;                // also of a netdev that is not there any more
    std::string parent;                     // the RDMA device that this one was made from (SMI)
    bool software = false;                  // rxe, siw
    [[nodiscard]] bool ethernet() const { return port->link_layer == "Ethernet"; }
    [[nodiscard]] bool infiniband() const { return port->link_layer == "InfiniBand"; }
    [[nodiscard]] bool active() const { return port->state == "ACTIVE"; }
};
[[nodiscard]] std::string name_of(RdmaPortView const& view);  // "mlx5_0/1", as `rdma link` has it
// Where sysfs has it: "/sys/class/infiniband/mlx5_0/ports/1".
[[nodiscard]] std::string folder_of(RdmaPortView const& view);

// Of software and hardware, SMI devices too. Empty where RDMA devices can't be seen.
[[nodiscard]] std::vector<RdmaPortView> rdma_ports(Machine const& machine);
// Of NICs, without SMI devices: those over which data goes.
[[nodiscard]] std::vector<RdmaPortView> nic_ports(Machine const& machine);

// iWARP, whose only GID is its MAC address.
[[nodiscard]] bool is_iwarp(Machine const& machine, MachineRdmaDevice const& device);
// Of "0000:0000:0000:0000:0000:ffff:c0a8:0101" the IPv4 address in it; else the IPv6 address.
[[nodiscard]] std::optional<IpAddress> gid_address(std::string_view gid);
[[nodiscard]] MachineNetdev const* find_netdev(Machine const& machine, std::string_view name);
// A netdev of switchdev mode that stands for a VF's other end; "pf0vf1", "c1pf0vf1".
[[nodiscard]] bool is_representor(MachineNetdev const& netdev);
// The index of the VF that it stands for.
[[nodiscard]] std::optional<std::uint16_t> represented_vf(MachineNetdev const& netdev);
// Netdevs of a PCI function without representors.
[[nodiscard]] std::vector<MachineNetdev const*> netdevs_of(Machine const& machine,
                                                           PciAddress const& pci);
// VLANs, bonds and bridges on it.
[[nodiscard]] std::vector<std::string> uppers_of(Machine const& machine, std::string_view netdev);

[[nodiscard]] Known<std::vector<NetdevAddress>> addresses_of(Machine const& machine);
// Of one netdev, without link-local ones; empty where addresses can't be seen.
[[nodiscard]] std::vector<NetdevAddress> addresses_on(Machine const& machine,
                                                      MachineNetdev const& netdev);

// Somebody relies on the link: it has an address, something is on it, it is in a bond or bridge, or
// VFs go out through it. In a VM, whatever was lent to it. Empty: nobody; else why, in words.
[[nodiscard]] std::string use_of(Machine const& machine, RdmaPortView const& view);

}  // namespace vfmgr::checks
