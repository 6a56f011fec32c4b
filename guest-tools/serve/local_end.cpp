// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/serve/local_end.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "guest-tools/verify/device.hpp"

namespace vfmgr::serve {
namespace {

constexpr std::chrono::seconds local_time{5};
constexpr std::uint16_t discard_port = 9;

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
    auto endpoint =
        verify::open_endpoint({end.address.address, end.netdev.name}, verify::endpoint_wait);
    if (endpoint) return endpoint->device;
    auto error = std::move(endpoint).error();
    error.remedy = fmt::format(
        "add an RDMA link: rdma link add rxe0 type rxe netdev {}; it needs libibverbs' provider "
        "(Debian: ibverbs-providers)",
        end.rdma_netdev);
    return fail(std::move(error));
}

}  // namespace vfmgr::serve
