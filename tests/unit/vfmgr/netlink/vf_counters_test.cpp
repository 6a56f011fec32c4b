// SPDX-License-Identifier: Apache-2.0
// A VF's traffic, as rtnetlink reports it. The lab queries a real kernel.
#include <linux/if_arp.h>

#include "network_namespace.hpp"
#include "vfmgr/netlink/vf.hpp"

namespace vfmgr {
namespace {

using test::Bytes;

// From a kernel since 4.17; `each` is added to every counter.
Bytes stats(std::uint64_t each) {
    return Bytes()
        .put<std::uint64_t>(IFLA_VF_STATS_RX_PACKETS, each + 1)
        .put<std::uint64_t>(IFLA_VF_STATS_TX_PACKETS, each + 2)
        .put<std::uint64_t>(IFLA_VF_STATS_RX_BYTES, each + 3)
        .put<std::uint64_t>(IFLA_VF_STATS_TX_BYTES, each + 4)
        .put<std::uint64_t>(IFLA_VF_STATS_BROADCAST, each + 5)
        .put<std::uint64_t>(IFLA_VF_STATS_MULTICAST, each + 6)
        .put<std::uint64_t>(IFLA_VF_STATS_RX_DROPPED, each + 7)
        .put<std::uint64_t>(IFLA_VF_STATS_TX_DROPPED, each + 8);
}

Bytes info(std::uint32_t vf, Bytes const& stats_of_it) {
    ifla_vf_mac mac{};
    mac.vf = vf;
    return Bytes().put(IFLA_VF_MAC, mac).nest(IFLA_VF_STATS, stats_of_it);
}

Bytes link_with(Bytes const& list) {
    ifinfomsg header{};
    header.ifi_type = ARPHRD_ETHER;
    return Bytes().add(header).nest(IFLA_VFINFO_LIST, list);
}

TEST(ParseVfCounters, ReadsThemByTheVfsNumber) {
    // Not by position: VF 0 is missing, and the order is the driver's.
    auto const link = link_with(Bytes()
                                    .nest(IFLA_VF_INFO, info(5, stats(500)))
                                    .nest(IFLA_VF_INFO, info(2, stats(1ULL << 40))));
    VfCounters expected;
    expected.rx_packets = (1ULL << 40) + 1;
    expected.tx_packets = (1ULL << 40) + 2;
    expected.rx_bytes = (1ULL << 40) + 3;
    expected.tx_bytes = (1ULL << 40) + 4;
    expected.broadcast = (1ULL << 40) + 5;
    expected.multicast = (1ULL << 40) + 6;
    expected.rx_dropped = (1ULL << 40) + 7;
    expected.tx_dropped = (1ULL << 40) + 8;
    auto const all = parse_vf_counters(link.view());
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0], (VfTraffic{2, expected}));
    EXPECT_EQ(all[1].index, 5);
    EXPECT_EQ(all[1].counters.rx_packets, 501U);
}

// The kernel answers so for a driver without ndo_get_vf_stats: igb, for one.
TEST(ParseVfCounters, ZerosAllOverAreNone) {
    Bytes zeros;
    for (std::uint16_t type = IFLA_VF_STATS_RX_PACKETS; type <= IFLA_VF_STATS_TX_DROPPED; ++type)
        zeros.put<std::uint64_t>(type, 0);
    auto const link = link_with(Bytes().nest(IFLA_VF_INFO, info(2, zeros)));
    EXPECT_TRUE(parse_vf_counters(link.view()).empty());
    zeros = Bytes().put<std::uint64_t>(IFLA_VF_STATS_RX_PACKETS, 0);
    zeros.put<std::uint64_t>(IFLA_VF_STATS_TX_DROPPED, 1);
    auto const one = link_with(Bytes().nest(IFLA_VF_INFO, info(2, zeros)));
    auto const all = parse_vf_counters(one.view());
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].counters.tx_dropped, 1U);
    EXPECT_EQ(all[0].counters.rx_packets, 0U) << "counted, and none came";
    EXPECT_EQ(all[0].counters.rx_dropped, std::nullopt) << "not told";
}

TEST(ParseVfCounters, WithoutStatisticsThereAreNone) {
    ifla_vf_mac mac{};
    mac.vf = 2;
    auto const link = link_with(Bytes().nest(IFLA_VF_INFO, Bytes().put(IFLA_VF_MAC, mac)));
    EXPECT_TRUE(parse_vf_counters(link.view()).empty());
    EXPECT_TRUE(parse_vf_counters({}).empty());
}

using VfCountersOfANetdev = test::Networked;

// The real kernel accepts the request; a veth has no VFs.
TEST_F(VfCountersOfANetdev, WithoutVfsAreNone) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near", "far"}));
    auto const ifindex = get_netdev(socket, "near", test::soon()).value().ifindex;
    EXPECT_EQ(read_vf_counters(socket, "near", ifindex, test::soon()), std::vector<VfTraffic>());
    auto const gone = read_vf_counters(socket, "near", 9999, test::soon());
    ASSERT_FALSE(gone);
    EXPECT_NE(gone.error().detail.find("near"), std::string::npos) << gone.error().detail;
}

}  // namespace
}  // namespace vfmgr
