// SPDX-License-Identifier: Apache-2.0
// IP addresses of network devices. Free functions on a socket that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

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
// once: no duplicate address detection, whose seconds would look like a failed verification.
[[nodiscard]] Result<void> add_address(NlSocket& socket, NetdevAddress const& address,
                                       Deadline deadline);
// Succeeds when the address or the device is already gone.
[[nodiscard]] Result<void> remove_address(NlSocket& socket, NetdevAddress const& address,
                                          Deadline deadline);

// Parses the payload of RTM_NEWADDR.
[[nodiscard]] std::optional<NetdevAddress> parse_address(ByteView payload);

}  // namespace vfmgr
