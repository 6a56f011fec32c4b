// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/serve/local_end.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include <algorithm>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/proof/echo.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::serve {
namespace {

using Steady = std::chrono::steady_clock;
// The kernel sends three requests, a second apart, before it gives up.
constexpr std::chrono::seconds resolve_time{4};
constexpr std::chrono::seconds answer_of_kernel{2};
constexpr std::uint16_t discard_port = 9;  // nothing needs to listen there

// Sends an empty datagram, only to make the kernel resolve the neighbour; it need not arrive.
Result<void> resolve(verify::SessionPermit const& permit) {
    VFMGR_TRY(auto const socket, verify::open_socket({permit.host_address, 0, permit.host_netdev}));
    auto const to = SocketAddress::of(permit.peer_address, discard_port);
    if (::sendto(socket.get(), nullptr, 0, 0, to.get(), to.length) >= 0) return {};
    return fail({Problem::kernel_refused,
                 fmt::format("nothing can be sent to {} over {}", to_string(permit.peer_address),
                             permit.host_netdev),
                 fmt::format("check the route (ip route get {}) and the state of {}",
                             to_string(permit.peer_address), permit.host_netdev),
                 {errno_cause("sendto", errno)}});
}

Result<Neighbour> resolve(verify::SessionPermit const& permit, int ifindex, NlSocket& socket) {
    VFMGR_TRY(auto monitor, EventMonitor::open());
    VFMGR_CHECK(resolve(permit));
    std::optional<Neighbour> found;
    VFMGR_CHECK(wait_until(monitor, Steady::now() + resolve_time, [&]() -> Result<bool> {
        VFMGR_TRY(auto const neighbours, list_neighbours(socket, Steady::now() + answer_of_kernel));
        found = resolved(permit.peer_address, ifindex, neighbours);
        return found.has_value();
    }));
    if (found) return *found;
    return fail(Problem::unavailable,
                fmt::format("no machine answers for {} on {}", to_string(permit.peer_address),
                            permit.host_netdev),
                "check that the VF is up, and VLAN, cable and switch between the two hosts");
}

bool is_vf(Neighbour const& found, verify::SessionPermit const& permit) {
    return permit.vf_guid ? found.port_guid == permit.vf_guid : found.mac == permit.vf_mac;
}

}  // namespace

bool on_link(IpAddress const& address, int ifindex, std::vector<IpRoute> const& routes) {
    IpRoute const* best = nullptr;
    for (auto const& route : routes)
        if (route.ifindex == ifindex && route.prefix.contains(address) &&
            (!best || route.prefix.length > best->prefix.length))
            best = &route;
    return best && !best->gateway;
}

std::optional<Neighbour> resolved(IpAddress const& address, int ifindex,
                                  std::vector<Neighbour> const& neighbours) {
    auto const entry = std::ranges::find_if(neighbours, [&](Neighbour const& each) {
        return each.ifindex == ifindex && each.address == address;
    });
    constexpr unsigned unknown = NUD_INCOMPLETE | NUD_FAILED;
    if (entry == neighbours.end() || (entry->state & unknown) != 0) return std::nullopt;
    if (!entry->mac && !entry->port_guid) return std::nullopt;
    return *entry;
}

Result<void> check_neighbour(verify::SessionPermit const& permit) {
    if (permit.vf_mac == MacAddress{} && !permit.vf_guid) return {};
    auto const deadline = Steady::now() + answer_of_kernel;
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, get_netdev(socket, permit.host_netdev, deadline));
    VFMGR_TRY(auto const routes, list_routes(socket, deadline));
    if (!on_link(permit.peer_address, netdev.ifindex, routes)) return {};
    VFMGR_TRY(auto found, resolve(permit, netdev.ifindex, socket));
    if (!is_vf(found, permit)) {
        // The entry may date from a VM that had the address before: resolve it again.
        VFMGR_CHECK(remove_neighbour(socket, permit.peer_address, netdev.ifindex,
                                     Steady::now() + answer_of_kernel));
        VFMGR_TRY(found, resolve(permit, netdev.ifindex, socket));
    }
    if (is_vf(found, permit)) return {};
    auto other = permit;
    other.vf_mac = found.mac.value_or(MacAddress{});
    other.vf_guid = found.port_guid;
    return fail(
        Problem::conflict,
        fmt::format("on {}, {} is at {}, but the VF has {}", permit.host_netdev,
                    to_string(permit.peer_address), verify::identity_of(other),
                    permit.vf_guid ? to_string(*permit.vf_guid) : to_string(permit.vf_mac)),
        fmt::format("find the machine with the other {} and remove the address from it, or attach "
                    "the VF with another address",
                    permit.vf_guid ? "port GUID" : "MAC"));
}

namespace {

constexpr std::chrono::seconds local_time{5};

}  // namespace

Result<LocalEnd> local_end_among(IpAddress const& address,
                                 std::vector<NetdevAddress> const& addresses,
                                 std::vector<Netdev> const& netdevs) {
    auto const held = std::ranges::find(addresses, address, &NetdevAddress::address);
    auto const netdev = held == addresses.end()
                            ? netdevs.end()
                            : std::ranges::find(netdevs, held->ifindex, &Netdev::ifindex);
    if (netdev == netdevs.end())
        return fail(Problem::not_found,
                    fmt::format("no netdev of this machine has the address {}", to_string(address)),
                    "name one that ip address shows, or add it: ip address add … dev …");
    auto const parent = std::ranges::find_if(netdevs, [&](Netdev const& each) {
        return netdev->parent_ifindex && each.ifindex == *netdev->parent_ifindex;
    });
    return LocalEnd{*netdev, *held, parent == netdevs.end() ? netdev->name : parent->name};
}

Result<LocalEnd> find_local_end(IpAddress const& address) {
    auto const deadline = std::chrono::steady_clock::now() + local_time;
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const addresses, list_addresses(socket, deadline));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    return local_end_among(address, addresses, netdevs);
}

Result<IpAddress> address_towards(IpAddress const& peer) {
    auto const to = SocketAddress::of(peer, discard_port);
    FileDescriptor const fd(::socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // connect() of a datagram socket chooses route and source address, and sends nothing.
    SocketAddress own;
    auto* const room = own.room();
    if (!fd || ::connect(fd.get(), to.get(), to.length) != 0 ||
        ::getsockname(fd.get(), room, &own.length) != 0)
        return fail({Problem::not_found,
                     fmt::format("this machine has no route to {}", to_string(peer)),
                     "give a netdev an address in its network, or name one with --address",
                     {errno_cause("connect", errno)}});
    auto const address = own.address();
    if (address) return *address;
    return fail(Problem::internal, "the kernel named no source address");
}

Result<std::string> find_rdma_device(LocalEnd const& end) {
    verify::EndpointOptions options{end.address.address, end.netdev.name};
    options.port_guid = end.netdev.port_guid;
    auto endpoint = verify::open_endpoint(options, verify::endpoint_wait);
    if (endpoint) return endpoint->device;
    auto error = std::move(endpoint).error();
    error.remedy = fmt::format(
        "add an RDMA link: rdma link add rxe0 type rxe netdev {}; it needs libibverbs' provider "
        "(Debian: ibverbs-providers)",
        end.rdma_netdev);
    return fail(std::move(error));
}

}  // namespace vfmgr::serve
