// SPDX-License-Identifier: Apache-2.0
#include "api/types/addresses.hpp"

#include "texts.hpp"

namespace vfmgr {
namespace {

using namespace std::string_view_literals;
using test::expect_read;
using test::expect_refused;

IpAddress ip(std::string_view text) {
    return IpAddress::parse(text).value();
}
IpPrefix prefix(std::string_view text) {
    return IpPrefix::parse(text).value();
}
std::string text_of(std::optional<IpAddress> const& address) {
    return address ? to_string(*address) : "none";
}

TEST(IpAddress, ReadsBothFamilies) {
    expect_read<IpAddress>({{"192.168.100.2", "192.168.100.2"},
                            {"0.0.0.0", "0.0.0.0"},
                            {"255.255.255.255", "255.255.255.255"},
                            {"::", "::"},
                            {"::1", "::1"},
                            {"2001:DB8:0:0::1", "2001:db8::1"},
                            {"2001:0db8:0001:0002:0003:0004:0005:0006", "2001:db8:1:2:3:4:5:6"},
                            {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
                             "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
                            {"::ffff:192.0.2.1", "::ffff:192.0.2.1"}});
    EXPECT_EQ(ip("1.2.3.4").family, IpAddress::Family::v4);
    EXPECT_EQ(ip("1.2.3.4").bits(), 32U);
    EXPECT_EQ(ip("::ffff:1.2.3.4").family, IpAddress::Family::v6) << "as it was written";
    EXPECT_EQ(ip("::1").bits(), 128U);
    EXPECT_NE(ip("0.0.0.0"), ip("::"));
}

TEST(IpAddress, RefusesWhatIsNone) {
    expect_refused<IpAddress>({"",
                               ".",
                               ":",
                               ":::",
                               "1.2.3",
                               "1.2.3.4.5",
                               "1.2.3.",
                               "1.2.3.256",
                               "01.2.3.4",
                               "1.2.3.-4",
                               "1.2.3.0x4",
                               "2130706433",
                               "18446744073709551616",
                               "1.2.3.4/24",
                               "1.2.3.4:80",
                               "[::1]",
                               "::1/128",
                               "fe80::1%enp1s0",
                               "1::2::3",
                               "12345::",
                               "::g",
                               "1:2:3:4:5:6:7",
                               "1:2:3:4:5:6:7:8:9",
                               "::ffff:1.2.3",
                               "localhost",
                               "1.2.3.4\0.5"sv,
                               "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555",
                               "\xd9\xa1.2.3.4"});
}

TEST(IpAddress, GidIsWhatRoceV2DerivesFromIt) {
    EXPECT_EQ(ip("192.0.2.1").gid(), (std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                   0xff, 0xff, 192, 0, 2, 1}));
    EXPECT_EQ(ip("2001:db8::1").gid(), (std::array<std::uint8_t, 16>{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0,
                                                                     0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(IpPrefix, ReadsBothFamilies) {
    expect_read<IpPrefix>({{"0.0.0.0/0", "0.0.0.0/0"},
                           {"10.0.0.0/8", "10.0.0.0/8"},
                           {"192.168.100.128/25", "192.168.100.128/25"},
                           {"192.168.100.3/32", "192.168.100.3/32"},
                           {"::/0", "::/0"},
                           {"FD00:0::/8", "fd00::/8"},
                           {"2001:db8::8000/113", "2001:db8::8000/113"},
                           {"2001:db8::1/128", "2001:db8::1/128"}});
}

TEST(IpPrefix, RefusesWhatIsNone) {
    expect_refused<IpPrefix>({"",
                              "/",
                              "/24",
                              "10.0.0.0",
                              "10.0.0.0/",
                              "10.0.0/24",
                              "10.0.0.0/33",
                              "::/129",
                              "10.0.0.0/-1",
                              "10.0.0.0/+8",
                              "10.0.0.0/ 8",
                              "10.0.0.0/08",
                              "0.0.0.0/00",
                              "10.0.0.0/8/8",
                              "10.0.0.0/255.0.0.0",
                              "10.0.0.0/0x8",
                              "10.0.0.0/264",
                              "10.0.0.0/4294967304",
                              "10.0.0.0/18446744073709551616",
                              "10.0.0.0/\0"sv,
                              "10.0.0.0\0/8"sv,
                              "10.0.0.0/٨"});
}

TEST(IpPrefix, SaysWhatWasMeantWhenHostBitsAreSet) {
    struct Row {
        char const *text, *meant;
    };
    for (auto const& [text, meant] : {Row{"192.168.100.3/24", "192.168.100.0/24"},
                                      {"255.255.255.255/0", "0.0.0.0/0"},
                                      {"10.0.0.1/31", "10.0.0.0/31"},
                                      {"10.128.0.0/8", "10.0.0.0/8"},
                                      {"fd00::1/64", "fd00::/64"},
                                      {"::1/127", "::/127"}}) {
        auto const value = IpPrefix::parse(text);
        ASSERT_FALSE(value) << text;
        EXPECT_EQ(value.error().remedy, std::string("write ") + meant);
    }
}

TEST(IpPrefix, ContainsItsOwnFamilyOnly) {
    struct Row {
        char const *prefix, *address;
        bool inside;
    };
    for (auto const& [text, address, inside] : {Row{"10.0.0.0/8", "10.255.255.255", true},
                                                {"10.0.0.0/8", "11.0.0.0", false},
                                                {"10.0.0.0/8", "9.255.255.255", false},
                                                {"192.168.100.128/25", "192.168.100.127", false},
                                                {"192.168.100.128/25", "192.168.100.128", true},
                                                {"10.0.0.1/32", "10.0.0.1", true},
                                                {"10.0.0.1/32", "10.0.0.0", false},
                                                {"0.0.0.0/0", "255.255.255.255", true},
                                                {"0.0.0.0/0", "::", false},
                                                {"::/0", "0.0.0.0", false},
                                                {"::/0", "ffff::1", true},
                                                {"fd00::/127", "fd00::1", true},
                                                {"fd00::/127", "fd00::2", false}})
        EXPECT_EQ(prefix(text).contains(ip(address)), inside) << address << " in " << text;
}

TEST(IpPrefix, OverlapsInBothDirections) {
    struct Row {
        char const *a, *b;
        bool overlap;
    };
    for (auto const& [a, b, overlap] : {Row{"10.0.0.0/8", "10.1.0.0/16", true},
                                        {"10.0.0.0/8", "10.0.0.0/8", true},
                                        {"10.0.0.0/9", "10.128.0.0/9", false},
                                        {"0.0.0.0/0", "192.168.0.1/32", true},
                                        {"10.0.0.1/32", "10.0.0.0/32", false},
                                        {"0.0.0.0/0", "::/0", false},
                                        {"fd00::/8", "fd12::/16", true},
                                        {"fd00::/16", "fd12::/16", false}}) {
        EXPECT_EQ(prefix(a).overlaps(prefix(b)), overlap) << a << " and " << b;
        EXPECT_EQ(prefix(b).overlaps(prefix(a)), overlap) << b << " and " << a;
    }
}

TEST(IpPrefix, EndsWithAllHostBitsSet) {
    struct Row {
        char const *prefix, *last;
    };
    for (auto const& [text, last] : {Row{"192.168.100.0/24", "192.168.100.255"},
                                     {"192.168.100.128/25", "192.168.100.255"},
                                     {"10.0.0.0/8", "10.255.255.255"},
                                     {"10.0.0.1/32", "10.0.0.1"},
                                     {"0.0.0.0/0", "255.255.255.255"},
                                     {"fd00::/64", "fd00::ffff:ffff:ffff:ffff"},
                                     {"fd00::/65", "fd00::7fff:ffff:ffff:ffff"},
                                     {"fd00::1/128", "fd00::1"}})
        EXPECT_EQ(to_string(prefix(text).last()), last) << text;
}

TEST(IpAddress, TheNextOneCarriesAndEndsWithItsFamily) {
    struct Row {
        char const *address, *next;
    };
    for (auto const& [text, next] : {Row{"192.168.100.1", "192.168.100.2"},
                                     {"192.168.100.255", "192.168.101.0"},
                                     {"9.255.255.255", "10.0.0.0"},
                                     {"255.255.255.255", "none"},
                                     {"fd00::ffff", "fd00::1:0"},
                                     {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "none"}})
        EXPECT_EQ(text_of(IpAddress::parse(text).value().next()), next) << text;
}

TEST(IpPrefix, BroadcastIsOfTheOldFamilyWithRoomForIt) {
    struct Row {
        char const *prefix, *broadcast;
    };
    for (auto const& [text, broadcast] : {Row{"192.168.100.0/24", "192.168.100.255"},
                                          {"10.0.0.0/8", "10.255.255.255"},
                                          {"10.0.0.4/30", "10.0.0.7"},
                                          {"0.0.0.0/0", "255.255.255.255"},
                                          {"10.0.0.4/31", "none"},
                                          {"10.0.0.4/32", "none"},
                                          {"fd00::/64", "none"}})
        EXPECT_EQ(text_of(prefix(text).broadcast()), broadcast) << text;
}

}  // namespace
}  // namespace vfmgr
