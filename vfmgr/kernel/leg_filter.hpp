// SPDX-License-Identifier: Apache-2.0
// What a tenant reaches of the host over its leg: the responder, and nothing else (DESIGN.md, 6.8).
// Two nftables tables of vfmgr's own, beside whatever firewall the host has: all have to let a
// packet through. Free functions; the caller holds the PF's claim.
#pragma once

#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/packet_filter.hpp"

namespace vfmgr {

// From now on `leg` reaches only the responder at `address`: RoCE v2, its UDP echo, stock clients.
// On a device of vfmgr's own, that is all it reaches: no other address of the host, and nothing
// behind it. The rules are written anew each time, whatever became of them. unsupported without
// nft(8).
[[nodiscard]] Result<void> filter_address(Netdev const& leg, IpAddress const& address,
                                          Deadline deadline);
// The same for what comes over `leg` from the VM's MAC, whosever device that is: from the VM's
// address to the responder's, and nothing else.
[[nodiscard]] Result<void> filter_vm(Netdev const& leg, FilteredVm const& vm, Deadline deadline);

// What holds at a leg: nothing while rules of it are missing, or others among them.
struct LegFilter {
    std::vector<IpAddress> addresses;
    std::vector<FilteredVm> vms;
};
[[nodiscard]] LegFilter filter_at(PacketFilter const& filter, Netdev const& leg);

// Success when there is no such filter.
[[nodiscard]] Result<void> unfilter_address(std::string const& leg, IpAddress const& address,
                                            Deadline deadline);
[[nodiscard]] Result<void> unfilter_vm(Netdev const& leg, IpAddress const& address,
                                       Deadline deadline);
[[nodiscard]] Result<void> unfilter_leg(std::string const& leg, Deadline deadline);

}  // namespace vfmgr
