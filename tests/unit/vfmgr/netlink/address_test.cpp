// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/ip.hpp"

#include <linux/if_addr.h>
#include <sys/socket.h>

#include <algorithm>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

using Addresses = test::Networked;

ifaddrmsg header_of(std::uint8_t family, std::uint8_t length) {
    ifaddrmsg header{};
    header.ifa_family = family;
    header.ifa_prefixlen = length;
    header.ifa_index = 5;
    return header;
}

TEST(ParseAddress, TakesTheLocalOneOfAPointToPointLink) {
    auto const bytes = Bytes()
                           .add(header_of(AF_INET, 32))
                           .put(IFA_ADDRESS, std::array<std::uint8_t, 4>{10, 0, 0, 9})
                           .put(IFA_LOCAL, std::array<std::uint8_t, 4>{10, 0, 0, 1});
    auto const address = parse_address(bytes.view()).value();
    EXPECT_EQ(to_string(address.address), "10.0.0.1");
    EXPECT_EQ(address.prefix_length, 32);
    EXPECT_EQ(address.ifindex, 5);
}

TEST(ParseAddress, RefusesWhatContradictsItself) {
    auto const v4 = std::array<std::uint8_t, 4>{10, 0, 0, 1};
    EXPECT_EQ(parse_address(Bytes().add(header_of(AF_INET6, 64)).put(IFA_ADDRESS, v4).view()),
              std::nullopt);
    EXPECT_EQ(parse_address(Bytes().add(header_of(AF_INET, 33)).put(IFA_ADDRESS, v4).view()),
              std::nullopt);
    EXPECT_EQ(parse_address(Bytes().add(header_of(AF_INET, 24)).view()), std::nullopt);
    EXPECT_EQ(parse_address({}), std::nullopt);
}

TEST_F(Addresses, AddListRemoveTwiceEach) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, true, {}}, soon()));
    for (auto const* const text : {"192.168.77.1", "fd00:77::1"}) {
        auto const ip = IpAddress::parse(text).value();
        auto const length = static_cast<std::uint8_t>(ip.bits());
        NetdevAddress const address{near.ifindex, ip, length};
        auto const listed = [&] {
            auto const all = list_addresses(socket, soon()).value();
            return std::count(all.begin(), all.end(), address);
        };
        EXPECT_EQ(listed(), 0);
        ASSERT_TRUE(add_address(socket, address, soon()));
        EXPECT_TRUE(add_address(socket, address, soon()));
        EXPECT_EQ(listed(), 1) << text;
        ASSERT_TRUE(remove_address(socket, address, soon()));
        EXPECT_EQ(listed(), 0) << text;
        EXPECT_TRUE(remove_address(socket, address, soon()));
    }
}

TEST_F(Addresses, NoSuchInterfaceIsRefusedOnAddAndFineOnRemove) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    NetdevAddress const address{4242, IpAddress::parse("192.168.77.1").value(), 32};
    auto const added = add_address(socket, address, soon());
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().causes[0].code, "ENODEV");
    EXPECT_NE(added.error().detail.find("192.168.77.1/32"), std::string::npos);
    EXPECT_TRUE(remove_address(socket, address, soon()));
}

}  // namespace
}  // namespace vfmgr
