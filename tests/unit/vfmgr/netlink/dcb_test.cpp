// SPDX-License-Identifier: Apache-2.0
// Lossless priorities and flow control, as drivers report them.
#include "vfmgr/netlink/qos.hpp"

#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "vfmgr/netlink/devlink.hpp"
#include "vfmgr/netlink/qos.hpp"

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;
using Dcbs = test::Networked;

Bytes answer_about(std::string_view ifname) {
    dcbmsg header{};
    header.cmd = DCB_CMD_IEEE_GET;
    Bytes bytes;
    bytes.add(header).text(DCB_ATTR_IFNAME, std::string(ifname));
    return bytes;
}

// The state after mlnx_qos --pfc 0,0,0,1,0,0,0,0 --trust dscp, in short.
Bytes priority_three_by_dscp() {
    ieee_pfc pfc{};
    pfc.pfc_cap = 8;
    pfc.pfc_en = 1U << 3U;
    pfc.delay = 7;
    ieee_ets const ets{};  // how they share the wire
    dcb_app const roce{IEEE_8021QAZ_APP_SEL_DSCP, 3, 26};
    dcb_app const lower{IEEE_8021QAZ_APP_SEL_DSCP, 1, 26};
    dcb_app const by_type{IEEE_8021QAZ_APP_SEL_ETHERTYPE, 4, 48};
    return Bytes()
        .put(DCB_ATTR_IEEE_ETS, ets)
        .put(DCB_ATTR_IEEE_PFC, pfc)
        .nest(DCB_ATTR_IEEE_APP_TABLE, Bytes()
                                           .put(DCB_ATTR_IEEE_APP, roce)
                                           .put(DCB_ATTR_IEEE_APP, lower)
                                           .put(DCB_ATTR_IEEE_APP, by_type));
}

TEST(ParseDcb, ReadsLosslessPrioritiesAndWhatHasThem) {
    auto const bytes = answer_about("ens1f0").nest(DCB_ATTR_IEEE, priority_three_by_dscp());
    auto const dcb = parse_dcb(bytes.view());
    ASSERT_TRUE(dcb);
    EXPECT_EQ(dcb->ifname, "ens1f0");
    EXPECT_EQ(dcb->pfc, 0x08);
    EXPECT_TRUE(trusts_dscp(*dcb));
    EXPECT_EQ(priority_of_dscp(*dcb, 26), 3);
    EXPECT_EQ(priority_of_dscp(*dcb, 48), 0) << "an entry for an Ethernet type";
}

TEST(ParseDcb, SaysWhatTheDriverDidNot) {
    auto const dcb = parse_dcb(answer_about("eth0").view());
    ASSERT_TRUE(dcb);
    EXPECT_FALSE(dcb->pfc || trusts_dscp(*dcb));
}

TEST(ParseDcb, NonsenseIsNothing) {
    EXPECT_EQ(parse_dcb({}), std::nullopt);
    EXPECT_EQ(parse_dcb(Bytes().add(dcbmsg{}).view()), std::nullopt);
    EXPECT_EQ(parse_dcb(answer_about("").view()), std::nullopt);
    dcb_app const ninth{IEEE_8021QAZ_APP_SEL_DSCP, 9, 1};
    auto const bytes = answer_about("eth0").nest(
        DCB_ATTR_IEEE, Bytes()
                           .put(DCB_ATTR_IEEE_PFC, std::uint32_t{1})
                           .nest(DCB_ATTR_IEEE_APP_TABLE, Bytes().put(DCB_ATTR_IEEE_APP, ninth)));
    auto const dcb = parse_dcb(bytes.view());
    ASSERT_TRUE(dcb);
    EXPECT_FALSE(dcb->pfc) << "shorter than the struct";
    EXPECT_TRUE(dcb->apps.empty()) << "there are eight priorities";
}

TEST(ParsePause, ReadsBothDirections) {
    auto const bytes =
        Bytes()
            .add(genlmsghdr{ETHTOOL_MSG_PAUSE_GET_REPLY, 1, 0})
            .nest(ETHTOOL_A_PAUSE_HEADER, Bytes().text(ETHTOOL_A_HEADER_DEV_NAME, "ens1f0"))
            .put(ETHTOOL_A_PAUSE_RX, std::uint8_t{1})
            .put(ETHTOOL_A_PAUSE_TX, std::uint8_t{0});
    EXPECT_EQ(parse_pause(bytes.view()), (Pause{"ens1f0", true, false}));
    EXPECT_EQ(parse_pause({}), std::nullopt);
}

// The kernel's own: a veth has neither, and reports so in the protocol's words.
TEST_F(Dcbs, DevicesWithoutDcbRefuse) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const reply = socket.ask(dcb_request("near0"), "DCB_CMD_IEEE_GET near0", soon()).value();
    EXPECT_EQ(reply.ack.error, EOPNOTSUPP);
    auto generic = NlSocket::open(NlProtocol::generic).value();
    auto const named = generic.ask(family_request("ethtool"), "CTRL_CMD_GETFAMILY", soon()).value();
    ASSERT_TRUE(named.ack.ok()) << named.ack.text;
    auto const payload = ByteView(named.answers.at(0).payload);
    auto const family = parse_family(after(payload, sizeof(genlmsghdr)));
    ASSERT_TRUE(family);
    auto const paused =
        generic.ask(pause_request(*family, "near0"), "ETHTOOL_MSG_PAUSE_GET near0", soon()).value();
    EXPECT_EQ(paused.ack.error, EOPNOTSUPP) << paused.ack.text;
}

}  // namespace
}  // namespace vfmgr
