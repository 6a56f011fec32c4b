// SPDX-License-Identifier: Apache-2.0
// A network of this host: a subnet that VMs join over VFs, and the host's own address in it on each
// PF that carries it, from which the host proves RDMA. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/range.hpp"

namespace vfmgr {

enum class RdmaMode { auto_, rxe, none };

// A member of a partition: limited ones reach only full ones.
enum class PkeyMembership { full, limited };

// An InfiniBand partition, which the subnet manager gives to ports; vfmgr never sets one. The P_Key
// in a port's table has the membership as its highest bit: 0x8001 for a full member of 0x0001.
struct Pkey {
    std::uint16_t key = 0x7fff;                        // 15 bits, 1..0x7fff: the default partition
    PkeyMembership membership = PkeyMembership::full;  // of the VMs; the host is a full member
    bool operator==(Pkey const&) const = default;
};

// Accepts "0x0001", "1", "0x0001=limited"; the highest bit, as in "0x8001", makes no difference.
[[nodiscard]] Result<Pkey> parse_pkey(std::string_view text);
[[nodiscard]] std::string to_string(Pkey const& pkey);  // "0x0001=full"
// The line of OpenSM's partitions.conf that makes a port a member, for IP packets of that MTU too:
// "vfmgr-0001=0x0001,indx0,ipoib:0x00…=full;". OpenSM merges lines of one P_Key (3.3.23,
// osm_prtn_config.c). By indx0 the partition is the one of the port's IPoIB interface.
[[nodiscard]] std::string partition_line(Pkey const& pkey, Guid const& port, std::uint32_t mtu);

inline constexpr std::uint8_t dscp_max = 63;
inline constexpr std::uint32_t network_mtu_min = 1280;
inline constexpr std::uint32_t network_mtu_max = 9216;

// A PF that carries the network: a rail.
struct NetworkPf {
    PciAddress pf;
    IpAddress host_address;  // the responder's on this PF, inside the prefix
    bool operator==(NetworkPf const&) const = default;
};

struct Network {
    std::string name;                   // unique on the host; [a-z0-9-], at most 32
    std::optional<std::uint16_t> vlan;  // 1..4094; absent: untagged
    IpPrefix prefix;
    std::vector<Range<IpAddress>>
        ranges;                       // of the addresses chosen for VMs; empty: all of the prefix
    std::uint32_t mtu = 1500;         // bytes, 1280..9216
    RdmaMode rdma = RdmaMode::auto_;  // auto: hardware only; rxe: SoftRoCE allowed
    // DSCP of the RoCE packets, 0..63, so that a test uses the traffic class that the network's
    // switches reserve for RDMA. Absent: 0, best effort.
    std::optional<std::uint8_t> dscp{};
    // The partition that VMs' ports are expected in, on InfiniBand. Absent: any.
    std::optional<Pkey> pkey{};
    std::vector<NetworkPf> pfs{};
    bool operator==(Network const&) const = default;
};

// Accepts [a-z0-9-], at most 32.
[[nodiscard]] bool can_be_a_networks(std::string_view name);
inline constexpr char const* rule_of_network_names = "must be 1 to 32 of a-z, 0-9 and '-'";

// Returns the host's address in the network on that PF; nullptr: the PF does not carry it.
[[nodiscard]] IpAddress const* host_address_on(Network const& network, PciAddress const& pf);
// True for an address that a VM can have: inside the prefix, neither its first nor its broadcast
// address, and none of the host's own.
[[nodiscard]] bool can_be_a_vms(Network const& network, IpAddress const& address);

extern template struct Json<Pkey>;  // {"key": 1, "membership": "limited"}
extern template struct Json<Network>;

}  // namespace vfmgr
