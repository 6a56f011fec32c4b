// SPDX-License-Identifier: Apache-2.0
// Routes of the main table. Free functions on a socket that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// rtm_protocol of every route that vfmgr made; `ip route` prints "proto 118". A number that
// rtnetlink.h does not register.
inline constexpr std::uint8_t our_route_protocol = 118;

struct IpRoute {
    IpPrefix prefix;             // length 0: a default route
    std::optional<int> ifindex;  // absent: blackhole and the like, or several next hops
    std::optional<IpAddress> source;
    std::optional<IpAddress> gateway;
    std::uint8_t protocol = 0;
    std::uint32_t metric = 0;
    bool operator==(IpRoute const&) const = default;
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

}  // namespace vfmgr
