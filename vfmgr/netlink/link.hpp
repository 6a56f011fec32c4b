// SPDX-License-Identifier: Apache-2.0
// Lists and changes network devices; makes and removes VLAN devices. Free functions on a socket
// that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// The ifalias of every VLAN device that vfmgr made.
inline constexpr std::string_view our_ifalias = "vfmgr";

struct Netdev {
    int ifindex = 0;
    std::string name;
    std::uint16_t hardware_type = 0;        // ARPHRD_ETHER 1, INFINIBAND 32, LOOPBACK 772
    std::string kind;                       // "vlan", "veth"; empty for hardware
    std::optional<std::uint16_t> vlan;      // of a VLAN device
    std::optional<int> parent_ifindex;      // of a VLAN device; absent when in another namespace
    std::optional<int> controller_ifindex;  // of its bridge or bond
    std::string alias;
    std::uint32_t group = 0;
    std::uint32_t mtu = 0;
    bool up = false;                            // IFF_UP, administratively
    bool carrier = false;                       // IFLA_CARRIER
    std::optional<MacAddress> mac;              // absent on IPoIB (20-byte address)
    std::optional<Guid> port_guid{};            // on IPoIB: the last 8 bytes of its address
    std::optional<std::uint16_t> pkey{};        // on IPoIB, with its highest bit
    std::optional<MacAddress> permanent_mac{};  // the hardware's; absent where it has none
    std::string parent_device;   // "0000:01:00.0"; empty for virtual ones and before Linux 5.14
    std::string phys_port_name;  // "p0", "pf0vf1" for a representor
    bool operator==(Netdev const&) const = default;
};

// True if vfmgr made it, even if killed between making the device and setting the alias.
[[nodiscard]] bool ours(Netdev const& netdev);

struct NetdevChange {
    int ifindex = 0;
    std::optional<bool> up;
    std::optional<std::uint32_t> mtu;
};

struct VlanNetdev {
    int parent_ifindex = 0;
    std::uint16_t vlan = 0;  // 1..4094
    std::string name;        // at most 15 characters
};

[[nodiscard]] Result<std::vector<Netdev>> list_netdevs(NlSocket& socket, Deadline deadline);
[[nodiscard]] Result<Netdev> get_netdev(NlSocket& socket, std::string const& name,
                                        Deadline deadline);
// Changes MTU and state in one message; `netdev` names the device in errors.
[[nodiscard]] Result<void> change_netdev(NlSocket& socket, std::string const& netdev,
                                         NetdevChange const& change, Deadline deadline);
// Adds the device, down and with our ifalias. Refuses when the name or the VLAN already exists.
[[nodiscard]] Result<void> add_vlan_netdev(NlSocket& socket, VlanNetdev const& vlan,
                                           Deadline deadline);
// Succeeds when the device is already gone.
[[nodiscard]] Result<void> delete_netdev(NlSocket& socket, Netdev const& netdev, Deadline deadline);

// Parses the payload of RTM_NEWLINK; nothing when it names no device.
[[nodiscard]] std::optional<Netdev> parse_netdev(ByteView payload);

}  // namespace vfmgr
