// SPDX-License-Identifier: Apache-2.0
#include "service/guest/check_peer.hpp"

#include <gmock/gmock.h>

#include "service/rate_limit.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;
constexpr std::uint16_t permanent_state = 0x80;

struct Kernel {
    verify::SessionPermit permit;
    std::vector<Neighbour> neighbours;
    std::vector<IpRoute> routes;

    Kernel() {
        permit.attachment = "a1";
        permit.vf_mac = *MacAddress::parse("52:54:00:11:22:33");
        permit.peer_address = *IpAddress::parse("192.168.100.10");
        permit.host_netdev = "enp1s0.100";
        neighbours = {{.ifindex = 7,
                       .address = permit.peer_address,
                       .mac = permit.vf_mac,
                       .state = permanent_state}};
        IpRoute route;
        route.prefix = {permit.peer_address, 32};
        route.ifindex = 7;
        routes = {route};
    }
    [[nodiscard]] std::string refusal() const {
        auto const judged = judge_peer(permit, 7, neighbours, routes);
        return judged ? std::string() : judged.error().detail;
    }
};

TEST(CheckPeer, OursIsRight) {
    EXPECT_EQ(Kernel().refusal(), "");
}

TEST(CheckPeer, TheNeighbourMustBeTheVf) {
    Kernel kernel;
    kernel.neighbours[0].mac = MacAddress::parse("52:54:00:11:22:34").value();
    EXPECT_EQ(kernel.refusal(),
              "the neighbour entry of 192.168.100.10 has 52:54:00:11:22:34, but the VF has "
              "52:54:00:11:22:33 on enp1s0.100");
    kernel.neighbours[0].mac.reset();
    EXPECT_THAT(kernel.refusal(), HasSubstr("has no MAC"));
}

TEST(CheckPeer, ALearntNeighbourIsNotEnough) {
    Kernel kernel;
    kernel.neighbours[0].state = 2;
    EXPECT_EQ(kernel.refusal(), "192.168.100.10 has no permanent neighbour entry on enp1s0.100");
    kernel.neighbours[0].state = permanent_state;
    kernel.neighbours[0].ifindex = 8;
    EXPECT_THAT(kernel.refusal(), HasSubstr("no permanent neighbour entry"));
    kernel.neighbours.clear();
    EXPECT_THAT(kernel.refusal(), HasSubstr("no permanent neighbour entry"));
}

TEST(CheckPeer, TheRouteMustBeTheInterfaces) {
    Kernel kernel;
    kernel.routes[0].ifindex = 9;
    EXPECT_THAT(kernel.refusal(), HasSubstr("another host route to 192.168.100.10"));
    kernel.routes[0].ifindex = 7;
    kernel.routes[0].prefix.length = 24;
    EXPECT_EQ(kernel.refusal(), "there is no host route to 192.168.100.10 on enp1s0.100");
}

// IPoIB's neighbours are learnt: none is needed, but a learnt one must be the VF's port.
TEST(CheckPeer, OnInfiniBandALearntNeighbourIsTheVfsPort) {
    Kernel kernel;
    kernel.permit.vf_mac = {};
    kernel.permit.vf_guid = Guid{0x0202'c9ff'fe11'0002};
    kernel.permit.host_netdev = "ib0";
    kernel.routes.clear();
    kernel.neighbours[0] = {7, kernel.permit.peer_address, {}, 2, kernel.permit.vf_guid};
    EXPECT_EQ(kernel.refusal(), "");
    kernel.neighbours[0].port_guid = Guid{0x0202'c9ff'fe11'0003};
    EXPECT_EQ(kernel.refusal(),
              "on ib0, 192.168.100.10 is at port GUID 02:02:c9:ff:fe:11:00:03, but the VF has "
              "02:02:c9:ff:fe:11:00:02");
    kernel.neighbours[0].ifindex = 8;
    EXPECT_EQ(kernel.refusal(), "");
    kernel.neighbours.clear();
    EXPECT_EQ(kernel.refusal(), "");
}

TEST(RateLimiter, FillsWithTime) {
    RateLimiter<std::uint32_t> limiter({.burst = 2, .per_second = 1});
    Deadline const start{};
    EXPECT_TRUE(limiter.take(3, start));
    EXPECT_TRUE(limiter.take(3, start));
    EXPECT_FALSE(limiter.take(3, start));
    EXPECT_TRUE(limiter.take(4, start));
    EXPECT_FALSE(limiter.take(3, start + std::chrono::milliseconds(900)));
    EXPECT_TRUE(limiter.take(3, start + std::chrono::milliseconds(1100)));
    EXPECT_FALSE(limiter.take(3, start + std::chrono::milliseconds(1200)));
    EXPECT_TRUE(limiter.take(3, start + std::chrono::hours(1)));
}

TEST(RateLimiter, ForgetsCidsThatWent) {
    RateLimiter<std::uint32_t> limiter({.burst = 1, .per_second = 1});
    Deadline const start{};
    for (std::uint32_t cid = 0; cid < 1024; ++cid) EXPECT_TRUE(limiter.take(cid, start));
    EXPECT_TRUE(limiter.take(5000, start + std::chrono::hours(1)));
    EXPECT_EQ(limiter.tracked(), 1U);
}

TEST(RateLimiter, KnowsABoundedNumberOfThoseWhoAsk) {
    RateLimiter<std::uint32_t> limiter({.burst = 2, .per_second = 1});
    Deadline const start{};
    for (std::uint32_t who = 0; who < 100'000; ++who) static_cast<void>(limiter.take(who, start));
    EXPECT_EQ(limiter.tracked(), 4096U);
    EXPECT_TRUE(limiter.take(0, start)) << "who is known has a share";
}

}  // namespace
}  // namespace vfmgr
