// SPDX-License-Identifier: Apache-2.0
// Checks an address before a session: one that is missing, or that another machine has as well,
// would otherwise only look like a path that loses packets. One thread; takes a third of a second.
#pragma once

#include "api/types/guest.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

// not_found: the netdev no longer has the attachment's address. conflict: another machine answers
// for it (RFC 5227's probe, IPv4 only); the detail has its MAC.
[[nodiscard]] Result<void> check_address(GuestAttachment const& attachment,
                                         std::string const& ifname);

// Checks before the netdev has the address, so no other machine loses traffic: conflict, as above.
[[nodiscard]] Result<void> check_unclaimed(IpAddress const& address, Netdev const& netdev,
                                           std::vector<Netdev> const& own);

// Returns the MAC that claims `address` in this ARP packet, which has no Ethernet header.
[[nodiscard]] std::optional<MacAddress> arp_claim(ByteView packet, IpAddress const& address);

}  // namespace vfmgr::guest
