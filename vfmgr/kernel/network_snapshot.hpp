// SPDX-License-Identifier: Apache-2.0
// A snapshot of the host's network, read through netlink. Values; any thread may take one.
#pragma once

#include "vfmgr/netlink/address.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/neighbour.hpp"
#include "vfmgr/netlink/packet_filter.hpp"
#include "vfmgr/netlink/rdma_link.hpp"
#include "vfmgr/netlink/rdma_listener.hpp"
#include "vfmgr/netlink/route.hpp"

namespace vfmgr {

struct HostNetdevs {
    std::vector<Netdev> netdevs;
    std::vector<NetdevAddress> addresses;
};
[[nodiscard]] Result<HostNetdevs> read_host_netdevs(Deadline deadline);

struct NetworkSnapshot {
    HostNetdevs host;
    std::vector<IpRoute> routes;
    std::vector<Neighbour> neighbours;
    std::vector<RdmaDevice> rdma_devices;  // none where the kernel has no RDMA
    std::map<std::string, std::vector<CmListener>>
        listeners;  // by RDMA device; devices without listeners are absent
    PacketFilter filter;
};
[[nodiscard]] Result<NetworkSnapshot> take_snapshot(Deadline deadline);

}  // namespace vfmgr
