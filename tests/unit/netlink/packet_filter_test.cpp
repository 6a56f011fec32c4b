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

// "enp1s0.100", NULs up to IFNAMSIZ, and an address as it is on the wire.
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

using PacketFilterOfTheKernel = test::Networked;

TEST_F(PacketFilterOfTheKernel, IsEmptyWithoutATable) {
    auto const filter = read_packet_filter(test::soon());
    ASSERT_TRUE(filter) << filter.error().detail;
    EXPECT_THAT(filter->addresses, IsEmpty());
    EXPECT_THAT(filter->legs, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
