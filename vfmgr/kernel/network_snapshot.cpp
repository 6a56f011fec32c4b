// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/network_snapshot.hpp"

#include <algorithm>

namespace vfmgr {
namespace {

Result<HostNetdevs> read_with(NlSocket& socket, Deadline deadline) {
    HostNetdevs host;
    VFMGR_TRY(host.netdevs, list_netdevs(socket, deadline));
    VFMGR_TRY(host.addresses, list_addresses(socket, deadline));
    return host;
}

Result<void> read_rdma(NetworkSnapshot& snapshot, Deadline deadline) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma && rdma.error().problem == Problem::unsupported) return {};
    if (!rdma) return fail(std::move(rdma).error());
    VFMGR_TRY(snapshot.rdma_devices, list_rdma_devices(*rdma, deadline));
    for (auto const& device : snapshot.rdma_devices) {
        auto listeners = list_cm_listeners(*rdma, device, deadline);
        if (!listeners) {  // fails, for example, for a device that has gone since
            VFMGR_TRY(auto const now, list_rdma_devices(*rdma, deadline));
            if (std::ranges::find(now, device.index, &RdmaDevice::index) != now.end())
                return fail(std::move(listeners).error());
        } else if (!listeners->empty()) {
            snapshot.listeners[device.name] = std::move(*listeners);
        }
    }
    return {};
}

}  // namespace

Result<HostNetdevs> read_host_netdevs(Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    return read_with(socket, deadline);
}

Result<NetworkSnapshot> take_snapshot(Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    NetworkSnapshot snapshot;
    VFMGR_TRY(snapshot.host, read_with(socket, deadline));
    VFMGR_TRY(snapshot.routes, list_routes(socket, deadline));
    VFMGR_TRY(snapshot.neighbours, list_neighbours(socket, deadline));
    VFMGR_CHECK(read_rdma(snapshot, deadline));
    VFMGR_TRY(snapshot.filter, read_packet_filter(deadline));
    return snapshot;
}

}  // namespace vfmgr
