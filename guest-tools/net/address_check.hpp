// SPDX-License-Identifier: Apache-2.0
// Looked at before a session: an address that is missing, or somebody else's, too, would only look
// like a path that loses packets. One thread; takes a third of a second.
#pragma once

#include "api/types/guest.hpp"
#include "vfmgr/netlink/attributes.hpp"

namespace vfmgr::guest {

// not_found: the netdev no longer has the attachment's address. conflict: another machine answers
// for it (RFC 5227's probe, IPv4 only); its MAC is in the detail.
[[nodiscard]] Result<void> check_address(GuestAttachment const& attachment,
                                         std::string const& ifname);

// Who says in this ARP packet, without its Ethernet header, that `address` is its own.
[[nodiscard]] std::optional<MacAddress> arp_claim(ByteView packet, IpAddress const& address);

}  // namespace vfmgr::guest
