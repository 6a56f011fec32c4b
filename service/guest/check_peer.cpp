// SPDX-License-Identifier: Apache-2.0
#include "service/guest/check_peer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/netlink/link.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds kernel_time{2};

tl::unexpected<Error> wrong(verify::SessionPermit const& permit, std::string detail) {
    return fail(Problem::conflict, fmt::format("{} on {}", std::move(detail), permit.host_netdev),
                fmt::format("detach attachment {} and attach it again, which sets its route and "
                            "neighbour entry",
                            permit.attachment));
}

// IPoIB's address has the number of a queue pair, which only the peer's answer shows: no entry can
// be set before. A GRH in each packet holds RDMA to the VF's port (RDMA.md#infiniband); what ARP
// has found must be the same port.
Result<void> judge_port(verify::SessionPermit const& permit, int ifindex,
                        std::vector<Neighbour> const& neighbours) {
    for (auto const& entry : neighbours)
        if (entry.ifindex == ifindex && entry.address == permit.peer_address && entry.port_guid &&
            entry.port_guid != permit.vf_guid)
            return fail(
                Problem::conflict,
                fmt::format("on {}, {} is at port GUID {}, but the VF has {}", permit.host_netdev,
                            to_string(permit.peer_address), to_string(*entry.port_guid),
                            to_string(*permit.vf_guid)),
                "find the machine with that port and remove the address from it, or attach the VF "
                "with another address");
    return {};
}

}  // namespace

Result<void> judge_peer(verify::SessionPermit const& permit, int ifindex,
                        std::vector<Neighbour> const& neighbours,
                        std::vector<IpRoute> const& routes) {
    if (permit.vf_guid) return judge_port(permit, ifindex, neighbours);
    auto const address = to_string(permit.peer_address);
    auto const neighbour = std::ranges::find_if(neighbours, [&](Neighbour const& entry) {
        return entry.ifindex == ifindex && entry.address == permit.peer_address;
    });
    if (neighbour == neighbours.end() || !permanent(*neighbour))
        return wrong(permit, fmt::format("{} has no permanent neighbour entry", address));
    if (neighbour->mac != permit.vf_mac)
        return wrong(permit,
                     fmt::format("the neighbour entry of {} has {}, but the VF has {}", address,
                                 neighbour->mac ? to_string(*neighbour->mac) : "no MAC",
                                 to_string(permit.vf_mac)));
    // The longest prefix wins: with a host route to the peer, no other route takes its traffic.
    auto const is_host_route = [&](IpRoute const& route) {
        return route.prefix.address == permit.peer_address &&
               route.prefix.length == permit.peer_address.bits();
    };
    auto const elsewhere = [&](IpRoute const& route) {
        return is_host_route(route) && route.ifindex != ifindex;
    };
    if (std::ranges::any_of(routes, elsewhere))
        return wrong(permit,
                     fmt::format("there is another host route to {}, which is not", address));
    if (std::ranges::any_of(routes, is_host_route)) return {};
    return wrong(permit, fmt::format("there is no host route to {}", address));
}

Result<void> check_peer(verify::SessionPermit const& permit) {
    auto const deadline = std::chrono::steady_clock::now() + kernel_time;
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, get_netdev(socket, permit.host_netdev, deadline));
    VFMGR_TRY(auto const neighbours, list_neighbours(socket, deadline));
    VFMGR_TRY(auto const routes, list_routes(socket, deadline));
    return judge_peer(permit, netdev.ifindex, neighbours, routes);
}

}  // namespace vfmgr
