// SPDX-License-Identifier: Apache-2.0
// What a tenant reaches of the host over its leg: the responder, and nothing else (DESIGN.md, 6.8).
// An nftables table of vfmgr's own, beside whatever firewall the host has: both have to let a
// packet through. Free functions; the caller holds the PF's claim.
#pragma once

#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/packet_filter.hpp"

namespace vfmgr {

// From now on `leg` reaches only the responder at `address`: RoCE v2 and its UDP echo. On a device
// of vfmgr's own, that is all it reaches: no other address of the host, and nothing behind it. The
// rules are written anew each time, whatever became of them. unsupported without nft(8).
[[nodiscard]] Result<void> filter_address(Netdev const& leg, IpAddress const& address,
                                          Deadline deadline);
// Success when there is no such filter.
[[nodiscard]] Result<void> unfilter_address(std::string const& leg, IpAddress const& address,
                                            Deadline deadline);
[[nodiscard]] Result<void> unfilter_leg(std::string const& leg, Deadline deadline);

}  // namespace vfmgr
