// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/device.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cerrno>

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;

PortState sound_port() {
    return {.device = "mlx5_3",
            .number = 1,
            .node_guid = 0x5254'0011'2233'4455,
            .state = IBV_PORT_ACTIVE,
            .layer = LinkLayer::ethernet};
}

TEST(PortState, ASoundOne) {
    EXPECT_TRUE(judge_port(sound_port()));
}

TEST(PortState, WithoutANodeGuid) {
    auto port = sound_port();
    port.node_guid = 0;
    auto const judged = judge_port(port);
    ASSERT_FALSE(judged);
    EXPECT_THAT(judged.error().detail, HasSubstr("the node GUID of mlx5_3 is zero"));
    EXPECT_THAT(judged.error().remedy, HasSubstr("when its driver was bound"));
}

TEST(PortState, Down) {
    auto port = sound_port();
    port.state = IBV_PORT_DOWN;
    auto const judged = judge_port(port);
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().problem, Problem::unavailable);
    EXPECT_EQ(judged.error().detail, "mlx5_3 port 1 is down, not active");
    EXPECT_THAT(judged.error().remedy, HasSubstr("link_state"));
}

TEST(PortState, WithoutASubnetManager) {
    auto port = sound_port();
    port.state = IBV_PORT_INIT;
    auto const judged = judge_port(port);
    ASSERT_FALSE(judged);
    EXPECT_THAT(judged.error().remedy, HasSubstr("subnet manager"));
}

TEST(PortState, EveryOtherStateHasARemedy) {
    for (auto const state : {IBV_PORT_NOP, IBV_PORT_ARMED, IBV_PORT_ACTIVE_DEFER}) {
        auto port = sound_port();
        port.state = state;
        auto const judged = judge_port(port);
        ASSERT_FALSE(judged) << state;
        EXPECT_NE(judged.error().remedy, "") << state;
    }
}

TEST(PortState, OfTheOtherLinkLayer) {
    auto port = sound_port();
    port.layer = LinkLayer::infiniband;
    port.state = IBV_PORT_DOWN;
    auto const judged = judge_port(port);
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().problem, Problem::unsupported);
    EXPECT_EQ(judged.error().detail,
              "mlx5_3 port 1 is InfiniBand, but the network is Ethernet (RoCE)");
    EXPECT_THAT(judged.error().remedy, HasSubstr("LINK_TYPE_P1=2"));
}

TEST(PortState, OfSeveralTheFirstReasonUnlessOneIsSound) {
    auto down = sound_port();
    down.state = IBV_PORT_DOWN;
    auto other = sound_port();
    other.device = "mlx5_4";
    other.node_guid = 0;
    EXPECT_TRUE(judge_ports({}));
    std::array const bad{down, other};
    auto const judged = judge_ports(bad);
    ASSERT_FALSE(judged);
    EXPECT_THAT(judged.error().detail, HasSubstr("mlx5_3 port 1"));
    std::array const mixed{down, sound_port(), other};
    EXPECT_TRUE(judge_ports(mixed));
}

}  // namespace
}  // namespace vfmgr::verify
