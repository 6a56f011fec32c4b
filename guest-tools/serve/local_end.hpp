// SPDX-License-Identifier: Apache-2.0
// This machine's end of a test with another host: the netdev that has an address, and its RDMA
// device. Queries the kernel; any thread.
#pragma once

#include "api/types/ip_address.hpp"
#include "vfmgr/netlink/address.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::serve {

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
