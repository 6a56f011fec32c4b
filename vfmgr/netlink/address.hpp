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

// IPv4 and IPv6, of every device.
[[nodiscard]] Result<std::vector<NetdevAddress>> list_addresses(NlSocket& socket,
                                                                Deadline deadline);
// Success when the device has it with this length already. An IPv6 address is usable at once: no
// duplicate address detection, whose seconds would look like a failed verification.
[[nodiscard]] Result<void> add_address(NlSocket& socket, NetdevAddress const& address,
                                       Deadline deadline);
// Success when it or the device is gone already.
[[nodiscard]] Result<void> remove_address(NlSocket& socket, NetdevAddress const& address,
                                          Deadline deadline);

// The payload of RTM_NEWADDR.
[[nodiscard]] std::optional<NetdevAddress> parse_address(ByteView payload);

}  // namespace vfmgr
