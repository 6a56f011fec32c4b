// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/socket.hpp"

#include <array>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;

TEST(Attributes, ReadsValuesByType) {
    auto const bytes = Bytes().put<std::uint32_t>(7, 42).text(9, "enp1s0").put<std::uint8_t>(3, 1);
    Attributes const attributes(bytes.view());
    EXPECT_EQ(attributes.value<std::uint32_t>(7), 42U);
    EXPECT_EQ(attributes.text(9), "enp1s0");
    EXPECT_EQ(attributes.value<std::uint8_t>(3), 1);
    EXPECT_EQ(attributes.value<std::uint32_t>(8), std::nullopt);
}

TEST(Attributes, ValueShorterThanAskedForIsAbsent) {
    auto const bytes = Bytes().put<std::uint16_t>(7, 42);
    EXPECT_EQ(Attributes(bytes.view()).value<std::uint32_t>(7), std::nullopt);
}

TEST(Attributes, IgnoresTheNestedFlag) {
    auto const inside = Bytes().put<std::uint32_t>(1, 5);
    auto const bytes = Bytes().nest(4 | NLA_F_NESTED, inside);
    EXPECT_EQ(Attributes(bytes.view()).nested(4).value<std::uint32_t>(1), 5U);
}

TEST(Attributes, StopsAtALengthThatCannotBeTrue) {
    struct Header {
        std::uint16_t length;
        std::uint16_t type;
    };
    for (std::uint16_t const length : std::array<std::uint16_t, 3>{0, 3, 200}) {
        auto const bytes =
            Bytes().put<std::uint32_t>(1, 5).add(Header{length, 2}).put<std::uint32_t>(3, 6);
        Attributes const attributes(bytes.view());
        ASSERT_EQ(attributes.all().size(), 1U) << "length " << length;
        EXPECT_EQ(attributes.value<std::uint32_t>(1), 5U);
    }
}

TEST(Attributes, TextWithoutItsNulEndsWithTheAttribute) {
    auto const bytes = Bytes().attribute(1, std::as_bytes(std::span("abcdef", 3)));
    EXPECT_EQ(Attributes(bytes.view()).text(1), "abc");
}

TEST(Attributes, AnIpoibAddressIsNoMac) {
    std::array<std::uint8_t, 20> const ipoib{1, 2, 3};
    std::array<std::uint8_t, 6> const mac{0x52, 0x54, 0, 1, 2, 3};
    auto const bytes = Bytes().put(1, ipoib).put(2, mac);
    Attributes const attributes(bytes.view());
    EXPECT_EQ(attributes.mac(1), std::nullopt);
    EXPECT_EQ(attributes.mac(2), MacAddress{mac});
}

TEST(Attributes, IpAddressesAreTakenByLength) {
    auto const bytes = Bytes()
                           .put(1, std::array<std::uint8_t, 4>{10, 0, 0, 1})
                           .put(2, std::array<std::uint8_t, 16>{0xfd})
                           .put(3, std::array<std::uint8_t, 5>{});
    Attributes const attributes(bytes.view());
    EXPECT_EQ(to_string(attributes.ip(1).value()), "10.0.0.1");
    EXPECT_EQ(to_string(attributes.ip(2).value()), "fd00::");
    EXPECT_EQ(attributes.ip(3), std::nullopt);
}

TEST(After, IsAlignedAndNeverBeyondTheEnd) {
    std::array<std::byte, 8> const bytes{};
    EXPECT_EQ(after(bytes, 2).size(), 4U);
    EXPECT_EQ(after(bytes, 8).size(), 0U);
    EXPECT_EQ(after(bytes, 9).size(), 0U);
    EXPECT_EQ(after(bytes, 100).size(), 0U);
}

}  // namespace
}  // namespace vfmgr
