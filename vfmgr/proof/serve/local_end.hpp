// SPDX-License-Identifier: Apache-2.0
// Checks that packets from a served responder to a VF's address reach that VF: the kernel's
// neighbour entry for the address has the VF's MAC. Resolved when a session opens. Any thread. If
// nothing answers it takes 4 s, or 8 s after another MAC had answered; the kernel's own answers may
// take 2 s each: 16 s at most.
#pragma once

#include "api/types/addresses.hpp"
#include "vfmgr/netlink/ip.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/proof/permit.hpp"

namespace vfmgr::serve {

// For verify::Responder::start(). Succeeds where it can't check: the permit has no MAC or GUID, or
// the address is behind a router.
[[nodiscard]] Result<void> check_neighbour(verify::SessionPermit const& permit);

// Whether the longest matching route over the netdev exists and has no gateway. Pure.
[[nodiscard]] bool on_link(IpAddress const& address, int ifindex,
                           std::vector<IpRoute> const& routes);
// What the kernel sends to; nullopt while it is unresolved. Pure.
[[nodiscard]] std::optional<Neighbour> resolved(IpAddress const& address, int ifindex,
                                                std::vector<Neighbour> const& neighbours);

// This machine's end of a test with another host: the netdev that has an address, and its RDMA
// device. Queries the kernel; any thread.

struct LocalEnd {
    Netdev netdev;
    NetdevAddress address;
    std::string rdma_netdev;  // netdev of its RDMA device: a VLAN device uses its parent's
};

// Fails with not_found if no netdev has the address.
[[nodiscard]] Result<LocalEnd> find_local_end(IpAddress const& address);
// The source address that this machine would use to reach `peer`.
[[nodiscard]] Result<IpAddress> address_towards(IpAddress const& peer);
// Returns the device's name. Fails with unsupported if there is none, and explains how to add one.
[[nodiscard]] Result<std::string> find_rdma_device(LocalEnd const& end);

// Picks the netdev among `addresses` and `netdevs`. Pure.
[[nodiscard]] Result<LocalEnd> local_end_among(IpAddress const& address,
                                               std::vector<NetdevAddress> const& addresses,
                                               std::vector<Netdev> const& netdevs);

}  // namespace vfmgr::serve
