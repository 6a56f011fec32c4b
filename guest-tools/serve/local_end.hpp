// SPDX-License-Identifier: Apache-2.0
// This machine's end of a test with another host: the netdev that has an address, and its RDMA
// device. Asked of the kernel; any thread.
#pragma once

#include "api/types/ip_address.hpp"
#include "vfmgr/netlink/address.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::serve {

struct LocalEnd {
    Netdev netdev;
    NetdevAddress address;
    std::string rdma_netdev;  // whose RDMA device speaks for it: a VLAN device has its parent's
};

// not_found: no netdev has the address.
[[nodiscard]] Result<LocalEnd> find_local_end(IpAddress const& address);
// The address that this machine would use to reach `peer`.
[[nodiscard]] Result<IpAddress> address_towards(IpAddress const& peer);
// Its name; unsupported when there is none, with how to make one.
[[nodiscard]] Result<std::string> find_rdma_device(LocalEnd const& end);

// Which of `addresses` and `netdevs` it is. Pure.
[[nodiscard]] Result<LocalEnd> local_end_among(IpAddress const& address,
                                               std::vector<NetdevAddress> const& addresses,
                                               std::vector<Netdev> const& netdevs);

}  // namespace vfmgr::serve
