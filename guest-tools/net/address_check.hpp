// SPDX-License-Identifier: Apache-2.0
// Looked at before a session: an address that is missing, or somebody else's, too, would only look
// like a path that loses packets. One thread; takes a third of a second.
#pragma once

#include "api/types/guest.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

// not_found: the netdev no longer has the attachment's address. conflict: another machine answers
// for it (RFC 5227's probe, IPv4 only); its MAC is in the detail.
[[nodiscard]] Result<void> check_address(GuestAttachment const& attachment,
                                         std::string const& ifname);

// Before the netdev has the address, so that nobody's traffic is taken: conflict, as above.
[[nodiscard]] Result<void> check_unclaimed(IpAddress const& address, Netdev const& netdev,
                                           std::vector<Netdev> const& own);

// Who says in this ARP packet, without its Ethernet header, that `address` is its own.
[[nodiscard]] std::optional<MacAddress> arp_claim(ByteView packet, IpAddress const& address);

}  // namespace vfmgr::guest
