// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/packet_filter.hpp"

#include <gmock/gmock.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using testing::IsEmpty;

// "enp1s0.100", NULs up to IFNAMSIZ, and an address in wire order.
Bytes key(std::initializer_list<int> address) {
    Bytes bytes;
    std::array<char, 16> name{"enp1s0.100"};
    bytes.add(name);
    for (auto const octet : address) bytes.add(static_cast<std::uint8_t>(octet));
    return bytes;
}

Bytes message(Bytes const& key) {
    Bytes element, elements, all;
    element.nest(NFTA_SET_ELEM_KEY, Bytes().attribute(NFTA_DATA_VALUE, key.view()));
    elements.nest(NFTA_LIST_ELEM, element);
    all.add(nfgenmsg{1, 0, 0}).text(NFTA_SET_ELEM_LIST_TABLE, "vfmgr");
    all.nest(NFTA_SET_ELEM_LIST_ELEMENTS, elements);
    return all;
}

TEST(PacketFilter, AKeyIsAnInterfaceAndAnAddress) {
    auto const four = message(key({192, 168, 100, 3}));
    auto const keys = parse_set_elements(four.view());
    ASSERT_EQ(keys.size(), 1U);
    EXPECT_EQ(parse_ifname_key(keys[0]), "enp1s0.100");
    EXPECT_EQ(parse_address_key(keys[0]),
              (FilteredAddress{"enp1s0.100", IpAddress::parse("192.168.100.3").value()}));
    auto const six = message(key({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}));
    auto const address = parse_address_key(parse_set_elements(six.view()).at(0));
    EXPECT_EQ(address.value().address, IpAddress::parse("fd00::3").value());
}

TEST(PacketFilter, WhatIsNoneIsNotTakenForOne) {
    EXPECT_EQ(parse_address_key(key({192, 168, 100}).view()), std::nullopt);
    EXPECT_EQ(parse_address_key(key({}).view()), std::nullopt);
    EXPECT_EQ(parse_ifname_key(key({}).view().first(15)), std::nullopt);
    EXPECT_THAT(parse_set_elements(key({1, 2, 3, 4}).view()), IsEmpty());
    EXPECT_THAT(parse_set_elements({}), IsEmpty());
}

// The same, with a MAC in its field of eight octets in between.
Bytes vm_key(std::initializer_list<int> addresses) {
    Bytes bytes;
    std::array<char, 16> name{"enp1s0"};
    bytes.add(name).add(std::array<std::uint8_t, 8>{2, 0, 0, 0, 0, 7, 0, 0});
    for (auto const octet : addresses) bytes.add(static_cast<std::uint8_t>(octet));
    return bytes;
}

TEST(PacketFilter, AVmIsAnInterfaceAMacAndTwoAddresses) {
    MacAddress const mac{{2, 0, 0, 0, 0, 7}};
    EXPECT_EQ(parse_vm_key(vm_key({10, 0, 0, 1, 10, 0, 0, 2}).view()),
              (FilteredVm{"enp1s0", mac, IpAddress::parse("10.0.0.1").value(),
                          IpAddress::parse("10.0.0.2").value()}));
    EXPECT_EQ(parse_vm_key(vm_key({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                                   0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2})
                               .view()),
              (FilteredVm{"enp1s0", mac, IpAddress::parse("fd00::1").value(),
                          IpAddress::parse("fd00::2").value()}));
    for (auto const& bad : {vm_key({}), vm_key({10, 0, 0, 1}), vm_key({10, 0, 0, 1, 10, 0, 0})})
        EXPECT_EQ(parse_vm_key(bad.view()), std::nullopt);
    EXPECT_EQ(parse_vm_key(vm_key({}).view().first(22)), std::nullopt);
}

Bytes datagram(int type, Bytes const& payload) {
    Bytes bytes;
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.view().size());
    header.nlmsg_type = static_cast<std::uint16_t>(type);
    bytes.add(header);
    for (auto const octet : payload.view()) bytes.add(octet);
    return bytes;
}

TEST(PacketFilter, AnEventNamesItsTableFirst) {
    auto const of = [](char const* table) {
        return Bytes()
            .add(nfgenmsg{1, 0, 0})
            .text(NFTA_RULE_TABLE, table)
            .text(NFTA_RULE_CHAIN, "input");
    };
    constexpr int deleted = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELRULE;
    EXPECT_TRUE(concerns_our_filter(datagram(deleted, of("vfmgr")).view()));
    EXPECT_FALSE(concerns_our_filter(datagram(deleted, of("vfmgr2")).view()));
    EXPECT_FALSE(concerns_our_filter(datagram(NFT_MSG_DELRULE, of("vfmgr")).view()))
        << "of another subsystem";
    EXPECT_FALSE(concerns_our_filter({}));
    EXPECT_EQ(parse_rule_chain(of("vfmgr").view()), "input");
    EXPECT_EQ(parse_rule_chain(Bytes().add(nfgenmsg{1, 0, 0}).view()), std::nullopt);
}

using PacketFilterOfTheKernel = test::Networked;

TEST_F(PacketFilterOfTheKernel, IsEmptyWithoutATable) {
    auto const filter = read_packet_filter(test::soon());
    ASSERT_TRUE(filter) << filter.error().detail;
    EXPECT_THAT(filter->addresses, IsEmpty());
    EXPECT_THAT(filter->interfaces, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
