// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/devlink.hpp"

#include <linux/devlink.h>
#include <linux/genetlink.h>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

DevlinkDevice const pf{"pci", "0000:01:00.0"};

Bytes port_bytes(std::uint16_t flavour = DEVLINK_PORT_FLAVOUR_PCI_VF) {
    return Bytes()
        .text(DEVLINK_ATTR_BUS_NAME, "pci")
        .text(DEVLINK_ATTR_DEV_NAME, "0000:01:00.0")
        .put<std::uint32_t>(DEVLINK_ATTR_PORT_INDEX, 65537)
        .put<std::uint16_t>(DEVLINK_ATTR_PORT_FLAVOUR, flavour)
        .put<std::uint16_t>(DEVLINK_ATTR_PORT_PCI_VF_NUMBER, 3);
}

// As Linux 6.2 and later report it: which of the bits are meant, and their values.
Bytes with_caps(std::uint32_t value, std::uint32_t selector) {
    constexpr std::uint16_t caps = 5;
    return port_bytes().nest(DEVLINK_ATTR_PORT_FUNCTION,
                             Bytes().put(caps, nla_bitfield32{value, selector}));
}

TEST(DevlinkDevice, IsWrittenAsDevlinkDoes) {
    EXPECT_EQ(to_string(devlink_device(PciAddress{0, 1, 0, 0})), "pci/0000:01:00.0");
}

TEST(ParseEswitchMode, KnowsBoth) {
    auto const mode = [](std::uint16_t number) {
        return parse_eswitch_mode(
            Bytes().put<std::uint16_t>(DEVLINK_ATTR_ESWITCH_MODE, number).view());
    };
    EXPECT_EQ(mode(DEVLINK_ESWITCH_MODE_LEGACY), EswitchMode::legacy);
    EXPECT_EQ(mode(DEVLINK_ESWITCH_MODE_SWITCHDEV), EswitchMode::switchdev);
    EXPECT_EQ(mode(7), std::nullopt);
    EXPECT_EQ(parse_eswitch_mode({}), std::nullopt);
}

TEST(ParseVfPort, IsOfAVfOfTheDevice) {
    EXPECT_EQ(parse_vf_port(port_bytes().view(), pf), (VfPort{65537, 3, {}}));
    EXPECT_EQ(parse_vf_port(port_bytes().view(), {"pci", "0000:01:00.1"}), std::nullopt);
    EXPECT_EQ(parse_vf_port(port_bytes().view(), {"auxiliary", "0000:01:00.0"}), std::nullopt);
    EXPECT_EQ(parse_vf_port(port_bytes(DEVLINK_PORT_FLAVOUR_PHYSICAL).view(), pf), std::nullopt);
    EXPECT_EQ(parse_vf_port({}, pf), std::nullopt);
}

TEST(ParseVfPort, ThatOfAnotherHostIsNone) {
    auto const external = [](std::uint8_t value) {
        return parse_vf_port(
            port_bytes().put<std::uint8_t>(DEVLINK_ATTR_PORT_EXTERNAL, value).view(), pf);
    };
    EXPECT_EQ(external(1), std::nullopt);
    EXPECT_TRUE(external(0));
}

TEST(ParseVfPort, SaysRoceWhereTheDriverDoes) {
    EXPECT_EQ(parse_vf_port(with_caps(1, 3).view(), pf)->roce, true);
    EXPECT_EQ(parse_vf_port(with_caps(2, 3).view(), pf)->roce, false);
    EXPECT_EQ(parse_vf_port(with_caps(1, 2).view(), pf)->roce, std::nullopt);
}

TEST(ParseFamily, IsTheMessageType) {
    EXPECT_EQ(parse_family(Bytes().put<std::uint16_t>(CTRL_ATTR_FAMILY_ID, 21).view()), 21);
    EXPECT_EQ(parse_family({}), std::nullopt);
}

// For a device that does not exist, with devlink in the kernel or without.
TEST(Devlink, KnowsNothingOfAnUnknownDevice) {
    DevlinkDevice const none{"pci", "ffff:ff:1f.7"};
    auto const mode = read_eswitch_mode(none, soon());
    ASSERT_TRUE(mode) << mode.error().detail;
    EXPECT_EQ(*mode, std::nullopt);
    auto const ports = list_vf_ports(none, soon());
    ASSERT_TRUE(ports) << ports.error().detail;
    EXPECT_TRUE(ports->empty());
    auto const ack = set_roce(none, {1, 0, {}}, true, soon());
    ASSERT_TRUE(ack) << ack.error().detail;
    EXPECT_FALSE(ack->ok());
}

}  // namespace
}  // namespace vfmgr
