// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/network_snapshot.hpp"

namespace vfmgr {
namespace {

Result<HostNetdevs> read_with(NlSocket& socket, Deadline deadline) {
    HostNetdevs host;
    VFMGR_TRY(host.netdevs, list_netdevs(socket, deadline));
    VFMGR_TRY(host.addresses, list_addresses(socket, deadline));
    return host;
}

Result<std::vector<RdmaDevice>> read_rdma(Deadline deadline) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (rdma) return list_rdma_devices(*rdma, deadline);
    if (rdma.error().problem == Problem::unsupported) return std::vector<RdmaDevice>{};
    return fail(std::move(rdma).error());
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
    VFMGR_TRY(snapshot.rdma_devices, read_rdma(deadline));
    VFMGR_TRY(snapshot.filter, read_packet_filter(deadline));
    return snapshot;
}

}  // namespace vfmgr
