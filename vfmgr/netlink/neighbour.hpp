// SPDX-License-Identifier: Apache-2.0
// Neighbour entries: which Ethernet address an IP address has on a link. Free functions on a socket
// that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

struct Neighbour {
    int ifindex = 0;
    IpAddress address;
    std::optional<MacAddress> mac;
    std::uint16_t state = 0;  // NUD_REACHABLE 2, NUD_STALE 4, NUD_FAILED 32, NUD_PERMANENT 128
    bool operator==(Neighbour const&) const = default;
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

}  // namespace vfmgr
