// SPDX-License-Identifier: Apache-2.0
// Routes and neighbours: together they are a peer of the host's interface.
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "network_namespace.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

using Neighbours = test::Networked;
using Routes = test::Networked;

auto const host = IpAddress::parse("192.168.77.1").value();
auto const peer = IpAddress::parse("192.168.77.9").value();

rtmsg header_of(std::uint8_t family, std::uint8_t length, std::uint8_t table) {
    rtmsg header{};
    header.rtm_family = family;
    header.rtm_dst_len = length;
    header.rtm_table = table;
    header.rtm_protocol = our_route_protocol;
    return header;
}

TEST(ParseRoute, ReadsAPeerRoute) {
    auto const bytes = Bytes()
                           .add(header_of(AF_INET, 32, RT_TABLE_MAIN))
                           .put(RTA_DST, std::array<std::uint8_t, 4>{192, 168, 77, 9})
                           .put<int>(RTA_OIF, 4)
                           .put(RTA_PREFSRC, std::array<std::uint8_t, 4>{192, 168, 77, 1});
    auto const route = parse_route(bytes.view()).value();
    EXPECT_EQ(to_string(route.prefix), "192.168.77.9/32");
    EXPECT_EQ(route.ifindex, 4);
    EXPECT_EQ(route.source, host);
    EXPECT_EQ(route.protocol, our_route_protocol);
}

TEST(ParseRoute, OtherTablesAndNonsenseAreNothing) {
    auto const v4 = std::array<std::uint8_t, 4>{10, 0, 0, 0};
    EXPECT_EQ(parse_route({}), std::nullopt);
    EXPECT_EQ(
        parse_route(Bytes().add(header_of(AF_INET, 8, RT_TABLE_LOCAL)).put(RTA_DST, v4).view()),
        std::nullopt);
    // Table 1000 does not fit rtm_table: the attribute decides.
    EXPECT_EQ(parse_route(Bytes()
                              .add(header_of(AF_INET, 8, RT_TABLE_MAIN))
                              .put<std::uint32_t>(RTA_TABLE, 1000)
                              .put(RTA_DST, v4)
                              .view()),
              std::nullopt);
    EXPECT_EQ(
        parse_route(Bytes().add(header_of(AF_INET, 33, RT_TABLE_MAIN)).put(RTA_DST, v4).view()),
        std::nullopt);
    EXPECT_EQ(
        parse_route(Bytes().add(header_of(AF_INET6, 8, RT_TABLE_MAIN)).put(RTA_DST, v4).view()),
        std::nullopt);
    EXPECT_EQ(parse_route(Bytes().add(header_of(AF_BRIDGE, 0, RT_TABLE_MAIN)).view()),
              std::nullopt);
}

TEST(ParseRoute, ADefaultRouteHasLengthZero) {
    auto const bytes = Bytes().add(header_of(AF_INET6, 0, RT_TABLE_MAIN)).put<int>(RTA_OIF, 4);
    auto const route = parse_route(bytes.view()).value();
    EXPECT_EQ(route.prefix.length, 0);
    EXPECT_EQ(route.prefix.address.family, IpAddress::Family::v6);
}

TEST(ParseNeighbour, ReadsStateAndAddress) {
    ndmsg header{};
    header.ndm_family = AF_INET;
    header.ndm_ifindex = 4;
    header.ndm_state = NUD_PERMANENT;
    auto const bytes = Bytes()
                           .add(header)
                           .put(NDA_DST, std::array<std::uint8_t, 4>{192, 168, 77, 9})
                           .put(NDA_LLADDR, std::array<std::uint8_t, 6>{0x52, 0x54, 0, 1, 2, 3});
    auto const neighbour = parse_neighbour(bytes.view()).value();
    EXPECT_EQ(neighbour.address, peer);
    EXPECT_EQ(to_string(neighbour.mac.value()), "52:54:00:01:02:03");
    EXPECT_TRUE(permanent(neighbour));
    header.ndm_state = NUD_FAILED;
    auto const failed =
        parse_neighbour(
            Bytes().add(header).put(NDA_DST, std::array<std::uint8_t, 4>{192, 168, 77, 9}).view())
            .value();
    EXPECT_EQ(failed.mac, std::nullopt);
    EXPECT_FALSE(permanent(failed));
}

// near0 up with the host's address, far0 up.
int prepare_interface(NlSocket& socket) {
    EXPECT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    auto const far = get_netdev(socket, "far0", soon()).value();
    EXPECT_TRUE(change_netdev(socket, "near0", {near.ifindex, true, {}}, soon()));
    EXPECT_TRUE(change_netdev(socket, "far0", {far.ifindex, true, {}}, soon()));
    EXPECT_TRUE(add_address(socket, {near.ifindex, host, 32}, soon()));
    return near.ifindex;
}

bool has_peer_route(NlSocket& socket) {
    auto const routes = list_routes(socket, soon()).value();
    return std::any_of(routes.begin(), routes.end(), [](IpRoute const& route) {
        return route.prefix == IpPrefix{peer, 32} && route.protocol == our_route_protocol;
    });
}

TEST_F(Routes, AddListRemoveTwiceEach) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    auto const ifindex = prepare_interface(socket);
    ASSERT_TRUE(add_peer_route(socket, {peer, ifindex, host}, soon()));
    EXPECT_TRUE(has_peer_route(socket));
    EXPECT_TRUE(add_peer_route(socket, {peer, ifindex, host}, soon()));
    ASSERT_TRUE(remove_peer_route(socket, peer, ifindex, soon()));
    EXPECT_FALSE(has_peer_route(socket));
    EXPECT_TRUE(remove_peer_route(socket, peer, ifindex, soon()));
}

TEST_F(Routes, SomebodyElsesIsAConflictAndStays) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    auto const ifindex = prepare_interface(socket);
    rtmsg header = header_of(AF_INET, 32, RT_TABLE_MAIN);
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    NlRequest theirs(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    theirs.header(header).put_ip(RTA_DST, peer).put(RTA_OIF, ifindex);
    ASSERT_TRUE(socket.request(theirs, "RTM_NEWROUTE", soon()).value().ok());

    auto const refused = add_peer_route(socket, {peer, ifindex, host}, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_NE(refused.error().detail.find("192.168.77.9"), std::string::npos);
    EXPECT_TRUE(remove_peer_route(socket, peer, ifindex, soon()));
    auto const routes = list_routes(socket, soon()).value();
    EXPECT_TRUE(std::any_of(routes.begin(), routes.end(), [](IpRoute const& route) {
        return route.prefix == IpPrefix{peer, 32} && route.protocol == RTPROT_STATIC;
    })) << "the other's route is still there";
}

TEST_F(Neighbours, ReplaceListRemoveTwiceEach) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    auto const ifindex = prepare_interface(socket);
    auto const entry = [&]() -> std::optional<Neighbour> {
        auto const all = list_neighbours(socket, soon()).value();
        for (auto const& each : all)
            if (each.ifindex == ifindex && each.address == peer) return each;
        return std::nullopt;
    };
    for (auto const* const mac : {"52:54:00:01:02:03", "52:54:00:01:02:04"}) {
        auto const expected = MacAddress::parse(mac).value();
        ASSERT_TRUE(replace_neighbour(socket, {ifindex, peer, expected}, soon()));
        ASSERT_TRUE(entry());
        EXPECT_EQ(entry()->mac, expected);
        EXPECT_TRUE(permanent(*entry()));
    }
    ASSERT_TRUE(remove_neighbour(socket, peer, ifindex, soon()));
    EXPECT_FALSE(entry() && permanent(*entry()));
    EXPECT_TRUE(
        remove_neighbour(socket, IpAddress::parse("192.168.77.55").value(), ifindex, soon()));
}

TEST_F(Neighbours, RemovedInterfaceIsFine) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    EXPECT_TRUE(remove_neighbour(socket, peer, 4242, soon()));
    EXPECT_TRUE(remove_peer_route(socket, peer, 4242, soon()));
}

}  // namespace
}  // namespace vfmgr
