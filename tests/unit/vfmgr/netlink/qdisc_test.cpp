// SPDX-License-Identifier: Apache-2.0
// Drops by tc, as the kernel reports them.
#include "vfmgr/netlink/qos.hpp"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "api/os/descriptor.hpp"

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;
using Qdiscs = test::Networked;

TEST(ParseQdisc, ReadsKindAndDrops) {
    tcmsg header{};
    header.tcm_ifindex = 7;
    header.tcm_handle = 0xffff0000;
    gnet_stats_queue counted{};
    counted.drops = 12;
    auto const bytes = Bytes()
                           .add(header)
                           .text(TCA_KIND, "ingress")
                           .nest(TCA_STATS2, Bytes().put(TCA_STATS_QUEUE, counted));
    EXPECT_EQ(parse_qdisc(bytes.view()), (Qdisc{7, "ingress", 12}));
}

TEST(ParseQdisc, NonsenseIsNothing) {
    EXPECT_EQ(parse_qdisc({}), std::nullopt);
    EXPECT_EQ(parse_qdisc(Bytes().add(tcmsg{}).view()), std::nullopt);
}

Qdisc qdisc_of(NlSocket& socket, std::string const& name) {
    auto const ifindex = get_netdev(socket, name, soon()).value().ifindex;
    auto const all = list_qdiscs(socket, soon()).value();
    return *std::ranges::find(all, ifindex, &Qdisc::ifindex);
}

// The kernel's own: a queue in front of a veth, far too small for the traffic.
TEST_F(Qdiscs, CountWhatTheyDrop) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    for (auto const* const command :
         {"ip link set far0 up", "ip link set near0 up", "ip address add 10.9.0.1/24 dev near0",
          "ip neighbour add 10.9.0.9 lladdr 02:00:00:00:00:09 dev near0",
          "tc qdisc add dev near0 root tbf rate 8kbit burst 2k limit 2k"})
        ASSERT_EQ(std::system(command), 0) << command;
    EXPECT_EQ(qdisc_of(socket, "near0").kind, "tbf");
    EXPECT_EQ(qdisc_of(socket, "near0").drops, 0U);
    FileDescriptor const sender(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(9);
    peer.sin_addr.s_addr = htonl(0x0a090009);
    std::array<char, 1000> const datagram{};
    for (int i = 0; i < 16; ++i)
        // ENOBUFS when it is dropped at once.
        static_cast<void>(::sendto(sender.get(), datagram.data(), datagram.size(), 0,
                                   reinterpret_cast<sockaddr*>(&peer), sizeof peer));
    EXPECT_GE(qdisc_of(socket, "near0").drops, 8U);
}

}  // namespace
}  // namespace vfmgr
