// SPDX-License-Identifier: Apache-2.0
// Restricts a tenant in every mode: over its interface it reaches only the responder on the host,
// and nothing is forwarded. Uses two nftables tables of vfmgr's own, beside the host's own
// firewall: a packet must pass both. Free functions; the caller holds the PF's claim.
#pragma once

#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/packet_filter.hpp"

namespace vfmgr {

// After this call `interface` reaches only the responder at `address`: RoCE v2, its UDP echo,
// interop clients. On a device that vfmgr made, nothing else is reachable: no other address of the
// host, and nothing behind it. Rewrites the rules on each call, whatever their state. unsupported
// without nft(8).
[[nodiscard]] Result<void> filter_address(Netdev const& interface, IpAddress const& address,
                                          Deadline deadline);
// Does the same for traffic that arrives over `interface` from the VM's MAC, on any device: it
// passes only from the VM's address to the responder's.
[[nodiscard]] Result<void> filter_vm(Netdev const& interface, FilteredVm const& vm,
                                     Deadline deadline);

// The filter in effect at an interface; empty while a rule is missing or a foreign one is added.
struct InterfaceFilter {
    std::vector<IpAddress> addresses;
    std::vector<FilteredVm> vms;
};
[[nodiscard]] InterfaceFilter filter_at(PacketFilter const& filter, Netdev const& interface);

// Succeeds when there is no such filter.
[[nodiscard]] Result<void> unfilter_address(std::string const& interface, IpAddress const& address,
                                            Deadline deadline);
[[nodiscard]] Result<void> unfilter_vm(Netdev const& interface, IpAddress const& address,
                                       Deadline deadline);
[[nodiscard]] Result<void> unfilter_interface(std::string const& interface, Deadline deadline);

}  // namespace vfmgr
