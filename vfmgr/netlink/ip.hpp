// SPDX-License-Identifier: Apache-2.0
// Addresses, neighbours and routes, by rtnetlink. Free functions; any thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// IP addresses of network devices. Free functions on a socket that the caller owns; its thread.

struct NetdevAddress {
    int ifindex = 0;
    IpAddress address;
    std::uint8_t prefix_length = 32;
    bool operator==(NetdevAddress const&) const = default;
};

// Lists the IPv4 and IPv6 addresses of every device.
[[nodiscard]] Result<std::vector<NetdevAddress>> list_addresses(NlSocket& socket,
                                                                Deadline deadline);
// Succeeds when the device already has the address with this length. An IPv6 address is usable at
// once, without duplicate address detection: its delay would look like a failed verification.
[[nodiscard]] Result<void> add_address(NlSocket& socket, NetdevAddress const& address,
                                       Deadline deadline);
// Succeeds when the address or the device is already gone.
[[nodiscard]] Result<void> remove_address(NlSocket& socket, NetdevAddress const& address,
                                          Deadline deadline);

// Parses the payload of RTM_NEWADDR.
[[nodiscard]] std::optional<NetdevAddress> parse_address(ByteView payload);

// Neighbour entries: which Ethernet address or port an IP address has on a link. Free functions on
// a socket that the caller owns; its thread.

struct Neighbour {
    int ifindex = 0;
    IpAddress address;
    std::optional<MacAddress> mac;
    std::uint16_t state = 0;  // NUD_REACHABLE 2, NUD_STALE 4, NUD_FAILED 32, NUD_PERMANENT 128
    std::optional<Guid> port_guid{};  // on IPoIB, where there is no MAC
};

[[nodiscard]] bool permanent(Neighbour const& neighbour);

struct PermanentNeighbour {
    int ifindex = 0;
    IpAddress address;
    MacAddress mac;
};

[[nodiscard]] Result<std::vector<Neighbour>> list_neighbours(NlSocket& socket, Deadline deadline);
// Replaces any earlier entry by a permanent one with this address.
[[nodiscard]] Result<void> replace_neighbour(NlSocket& socket, PermanentNeighbour const& neighbour,
                                             Deadline deadline);
// Succeeds when the entry or the device is already gone.
[[nodiscard]] Result<void> remove_neighbour(NlSocket& socket, IpAddress const& address, int ifindex,
                                            Deadline deadline);

// Parses the payload of RTM_NEWNEIGH; nothing for bridge entries.
[[nodiscard]] std::optional<Neighbour> parse_neighbour(ByteView payload);

// Routes of the main table. Free functions on a socket that the caller owns; its thread.

// rtm_protocol of every route that vfmgr made; `ip route` prints "proto 118". A number that
// rtnetlink.h does not register.
inline constexpr std::uint8_t our_route_protocol = 118;

struct IpRoute {
    IpPrefix prefix;             // length 0: a default route
    std::optional<int> ifindex;  // absent: blackhole and the like, or several next hops
    std::optional<IpAddress> source;
    std::optional<IpAddress> gateway;
    std::uint8_t protocol = 0;
};

// A route to one address on a link, for a peer of the host interface.
struct PeerRoute {
    IpAddress address;
    int ifindex = 0;
    IpAddress source;
};

[[nodiscard]] Result<std::vector<IpRoute>> list_routes(NlSocket& socket, Deadline deadline);
// Succeeds when it is already ours. Conflict when another program has a route to that address.
[[nodiscard]] Result<void> add_peer_route(NlSocket& socket, PeerRoute const& route,
                                          Deadline deadline);
// Removes only one of ours; succeeds when it is already gone.
[[nodiscard]] Result<void> remove_peer_route(NlSocket& socket, IpAddress const& address,
                                             int ifindex, Deadline deadline);

// Parses the payload of RTM_NEWROUTE; nothing when it is not of the main table.
[[nodiscard]] std::optional<IpRoute> parse_route(ByteView payload);

// Routes packets from an address out of its own device: a routing table for the address, and the
// rule that leads to it. Free functions on a socket that the caller owns; its thread.

// Before the main table's rule (32766), after the local one's (0).
inline constexpr std::uint32_t source_rule_priority = 30118;

// Returns the table's number: the IPv4 address as an integer, so it is unique and the same after a
// reboot; for an IPv6 address its 32-bit groups, combined by exclusive or.
[[nodiscard]] std::uint32_t source_table(IpAddress const& address);

// Adds a route to the address's network, by its device, to that table. Succeeds if both are already
// there. Destinations without a route in the table are looked up in the main table as before.
[[nodiscard]] Result<void> add_source_route(NlSocket& socket, NetdevAddress const& address,
                                            Deadline deadline);
// Succeeds when both are already gone, with the device, for example.
[[nodiscard]] Result<void> remove_source_route(NlSocket& socket, NetdevAddress const& address,
                                               Deadline deadline);

}  // namespace vfmgr
