// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/link.hpp"

#include <linux/if.h>
#include <linux/if_arp.h>

#include <algorithm>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

using Links = test::Networked;

ifinfomsg header_of(int ifindex, unsigned flags) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    header.ifi_type = ARPHRD_ETHER;
    header.ifi_flags = flags;
    return header;
}

Bytes vlan_bytes() {
    auto const data = Bytes().put<std::uint16_t>(IFLA_VLAN_ID, 100);
    auto const info = Bytes().text(IFLA_INFO_KIND, "vlan").nest(IFLA_INFO_DATA, data);
    return Bytes()
        .add(header_of(7, IFF_UP))
        .text(IFLA_IFNAME, "enp1s0.100")
        .put<std::uint32_t>(IFLA_MTU, 9000)
        .put<int>(IFLA_LINK, 3)
        .put<std::uint8_t>(IFLA_CARRIER, 1)
        .put<std::uint8_t>(IFLA_OPERSTATE, 6)
        .text(IFLA_IFALIAS, "vfmgr")
        .put(IFLA_ADDRESS, std::array<std::uint8_t, 6>{0x52, 0x54, 0, 1, 2, 3})
        .put(IFLA_PERM_ADDRESS, std::array<std::uint8_t, 6>{0x52, 0x54, 0, 9, 9, 9})
        .nest(IFLA_LINKINFO, info);
}

TEST(ParseNetdev, ReadsAVlanDevice) {
    auto const netdev = parse_netdev(vlan_bytes().view()).value();
    EXPECT_EQ(netdev.ifindex, 7);
    EXPECT_EQ(netdev.name, "enp1s0.100");
    EXPECT_EQ(netdev.kind, "vlan");
    EXPECT_EQ(netdev.vlan, 100);
    EXPECT_EQ(netdev.parent_ifindex, 3);
    EXPECT_EQ(netdev.mtu, 9000U);
    EXPECT_TRUE(netdev.up);
    EXPECT_TRUE(netdev.carrier);
    EXPECT_EQ(netdev.alias, "vfmgr");
    EXPECT_EQ(to_string(netdev.mac.value()), "52:54:00:01:02:03");
    EXPECT_EQ(to_string(netdev.permanent_mac.value()), "52:54:00:09:09:09");
    EXPECT_TRUE(ours(netdev));
}

TEST(ParseNetdev, AParentInAnotherNamespaceIsNoParent) {
    auto const bytes = vlan_bytes().put<std::int32_t>(IFLA_LINK_NETNSID, 1);
    EXPECT_EQ(parse_netdev(bytes.view()).value().parent_ifindex, std::nullopt);
}

TEST(ParseNetdev, ReadsWhatTellsAPfFromARepresentor) {
    auto const bytes = Bytes()
                           .add(header_of(4, 0))
                           .text(IFLA_IFNAME, "eth3")
                           .text(IFLA_PHYS_PORT_NAME, "pf0vf1")
                           .put<int>(IFLA_MASTER, 12)
                           .text(IFLA_PARENT_DEV_NAME, "0000:3b:00.0");
    auto const netdev = parse_netdev(bytes.view()).value();
    EXPECT_EQ(netdev.phys_port_name, "pf0vf1");
    EXPECT_EQ(netdev.parent_device, "0000:3b:00.0");
    EXPECT_EQ(netdev.controller_ifindex, 12);
    EXPECT_FALSE(netdev.up);
    EXPECT_FALSE(netdev.carrier);
    EXPECT_EQ(netdev.vlan, std::nullopt);
}

TEST(ParseNetdev, WithoutNameOrHeaderIsNothing) {
    EXPECT_EQ(parse_netdev({}), std::nullopt);
    EXPECT_EQ(parse_netdev(Bytes().add(header_of(4, 0)).view()), std::nullopt);
    EXPECT_EQ(parse_netdev(Bytes().add(header_of(0, 0)).text(IFLA_IFNAME, "x").view()),
              std::nullopt);
}

TEST(Ours, IsOnlyWhatBearsOurMark) {
    Netdev vlan;
    vlan.kind = "vlan";
    EXPECT_FALSE(ours(vlan));
    vlan.alias = "vfmgr";
    EXPECT_TRUE(ours(vlan));
    vlan.kind = "";  // another's PF with vfmgr's alias on it is not vfmgr's to remove
    EXPECT_FALSE(ours(vlan));
    Netdev half_made;  // killed before the alias was written
    half_made.kind = "vlan";
    half_made.group = 0x76666d67;
    EXPECT_TRUE(ours(half_made));
    half_made.alias = "somebody's";
    EXPECT_FALSE(ours(half_made));
}

TEST_F(Links, ListChangeAndDelete) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    EXPECT_EQ(near.kind, "veth");
    EXPECT_FALSE(near.up);
    EXPECT_TRUE(near.mac.has_value());
    ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, true, 1400}, soon()));
    auto far = get_netdev(socket, "far0", soon()).value();
    ASSERT_TRUE(change_netdev(socket, "far0", {far.ifindex, true, {}}, soon()));
    auto const changed = get_netdev(socket, "near0", soon()).value();
    EXPECT_TRUE(changed.up);
    EXPECT_TRUE(changed.carrier);
    EXPECT_EQ(changed.mtu, 1400U);
    EXPECT_EQ(get_netdev(socket, "far0", soon()).value().mtu, far.mtu);

    ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, false, {}}, soon()));
    EXPECT_FALSE(get_netdev(socket, "near0", soon()).value().up);
    EXPECT_EQ(get_netdev(socket, "near0", soon()).value().mtu, 1400U);

    auto const all = list_netdevs(socket, soon()).value();
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [](Netdev const& each) { return each.kind == "veth"; }),
              2);
    ASSERT_TRUE(delete_netdev(socket, near, soon()));
    EXPECT_TRUE(delete_netdev(socket, near, soon())) << "gone already is success";
    EXPECT_EQ(get_netdev(socket, "far0", soon()).error().problem, Problem::not_found);
}

TEST_F(Links, RefusalNamesDeviceValueAndErrno) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    auto const refused = change_netdev(socket, "near0", {near.ifindex, {}, 10'000'000}, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_NE(refused.error().detail.find("near0 could not be set to mtu 10000000"),
              std::string::npos)
        << refused.error().detail;
    EXPECT_FALSE(refused.error().remedy.empty());
    ASSERT_EQ(refused.error().causes.size(), 1U);
    EXPECT_EQ(refused.error().causes[0].code, "EINVAL");

    auto const missing = get_netdev(socket, "no-such0", soon());
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().problem, Problem::not_found);
    EXPECT_EQ(missing.error().causes[0].code, "ENODEV");
}

// A kernel without 8021q reports that, with a remedy; the lab's has it.
TEST_F(Links, AVlanDeviceIsOurs) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const parent = get_netdev(socket, "near0", soon()).value();
    VlanNetdev const vlan{parent.ifindex, 100, "near0.100"};
    auto const added = add_vlan_netdev(socket, vlan, soon());
    if (!added) {
        EXPECT_EQ(added.error().problem, Problem::unsupported) << added.error().detail;
        EXPECT_NE(added.error().remedy.find("modprobe 8021q"), std::string::npos);
        EXPECT_EQ(get_netdev(socket, "near0.100", soon()).error().problem, Problem::not_found);
        GTEST_SKIP() << "this kernel makes no VLAN devices: " << added.error().detail;
    }
    auto const made = get_netdev(socket, "near0.100", soon()).value();
    EXPECT_EQ(made.vlan, 100);
    EXPECT_EQ(made.parent_ifindex, parent.ifindex);
    EXPECT_EQ(made.alias, "vfmgr");
    EXPECT_FALSE(made.up);
    EXPECT_TRUE(ours(made));
    auto const again = add_vlan_netdev(socket, vlan, soon());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::conflict);
    EXPECT_TRUE(delete_netdev(socket, made, soon()));
}

}  // namespace
}  // namespace vfmgr
