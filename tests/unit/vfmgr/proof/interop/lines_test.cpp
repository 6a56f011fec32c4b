// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/lines.hpp"

#include <gtest/gtest.h>

namespace vfmgr::interop {
namespace {

using namespace std::string_literals;

// As captured from the clients (vfmgr/rdma/RDMA.md#ibv_rc_pingpong and #perftest there).
auto const pingpong = "0000:000018:35537b:00000000000000000000ffff0a090001\0"s;
auto const perftest =
    "0000:0010:000011:5a7e21:00000203:00007f3a2c0e1000:"
    "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:09:00:01:00000000:\0"s;
auto const gid = "00000000000000000000ffff0a090001";

TEST(PingpongLine, IsReadAndWritten) {
    auto const end = parse_pingpong_line(pingpong);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->qp_num, 0x18U);
    EXPECT_EQ(end->psn, 0x35537bU);
    EXPECT_EQ(end->gid, gid);
    EXPECT_EQ(end->path_mtu, 1024U);
    EXPECT_EQ(make_pingpong_line(*end), pingpong);
}

TEST(PingpongLine, IsReadStrictly) {
    EXPECT_FALSE(parse_pingpong_line(""));
    EXPECT_FALSE(parse_pingpong_line(pingpong.substr(1)));
    for (std::size_t at = 0; at < pingpong.size(); ++at) {
        auto wrong = pingpong;
        wrong[at] = 'X';
        EXPECT_FALSE(parse_pingpong_line(wrong)) << at;
    }
}

TEST(PerftestLine, IsReadAndWritten) {
    ASSERT_EQ(perftest.size(), perftest_line_bytes);
    EXPECT_TRUE(begins_perftest_line(perftest.substr(0, 8)));
    auto const line = parse_perftest_line(perftest);
    ASSERT_TRUE(line);
    EXPECT_EQ(line->end.reads_max, 16);
    EXPECT_EQ(line->end.qp_num, 0x11U);
    EXPECT_EQ(line->end.psn, 0x5a7e21U);
    EXPECT_EQ(line->end.gid, gid);
    EXPECT_EQ(line->memory, (MemoryRegion{0x7f3a2c0e1000, 0x203, 0}));
    EXPECT_EQ(make_perftest_line(*line), perftest);
}

TEST(PerftestLine, IsReadStrictly) {
    for (std::size_t at = 0; at < perftest.size(); ++at) {
        auto wrong = perftest;
        wrong[at] = 'X';
        EXPECT_FALSE(parse_perftest_line(wrong)) << at;
    }
}

// More concurrent reads than a queue pair can express.
TEST(PerftestLine, ReadsAtOnceAreCut) {
    auto many = perftest;
    many.replace(5, 4, "ffff");
    EXPECT_EQ(parse_perftest_line(many)->end.reads_max, 255);
}

// A result's size, iterations and rates, eight bytes each.
TEST(PerftestLine, IsToldFromAResult) {
    EXPECT_FALSE(begins_perftest_line("\0\0\0\0\0\1\0\0"s));
    EXPECT_FALSE(begins_perftest_line("\x40\x59\0\0\0\0\0\0"s));
    EXPECT_FALSE(begins_perftest_line("0000"));
}

TEST(PerftestVersion, From570On) {
    auto const padded = [](std::string text) {
        text.resize(perftest_version_bytes);
        return text;
    };
    for (auto const* const one : {"5.70", "6.06", "6.29", "7.0"})
        EXPECT_TRUE(is_perftest_version(padded(one))) << one;
    for (auto const* const one : {"5.69", "4.5", "", "6", "6.", "six.06", "6.06.1", "-6.06"})
        EXPECT_FALSE(is_perftest_version(padded(one))) << one;
    EXPECT_FALSE(is_perftest_version("6.06"));
    EXPECT_FALSE(is_perftest_version("0000:000018:3553"));
    EXPECT_TRUE(is_perftest_version(padded(std::string(perftest_version))));
}

TEST(PerftestPage, IsOneOfLinux) {
    EXPECT_EQ(perftest_page_bytes("\0\0\x10\0"s), 4096U);
    EXPECT_EQ(perftest_page_bytes("\0\x1\0\0"s), 65536U);
    for (auto const& none :
         {"\0\0\0\x1"s, "\0\x2\0\0"s, "\0\0\x10\x1"s, "\xff\0\0\0"s, "\0\0\x10"s})
        EXPECT_EQ(perftest_page_bytes(none), 0U);
}

TEST(PerftestMtu, IsNumberedAsVerbsDo) {
    auto text = "1\0"s;
    for (std::uint32_t const bytes : {256U, 512U, 1024U, 2048U, 4096U}) {
        EXPECT_EQ(perftest_mtu_bytes(text), bytes);
        EXPECT_EQ(make_perftest_mtu(bytes), text);
        ++text[0];
    }
    EXPECT_EQ(perftest_mtu_bytes("0\0"s), 0U);
    EXPECT_EQ(perftest_mtu_bytes("6\0"s), 0U);
    EXPECT_EQ(perftest_mtu_bytes("55"), 0U);
}

TEST(RpingMessage, IsBigEndian) {
    MemoryRegion const region{0x0102030405060708, 0x090a0b0c, 64};
    auto const message = make_rping_message(region);
    EXPECT_EQ(std::to_integer<int>(message[0]), 1);
    EXPECT_EQ(std::to_integer<int>(message[11]), 0xc);
    EXPECT_EQ(std::to_integer<int>(message[15]), 64);
    EXPECT_EQ(parse_rping_message(message), region);
}

}  // namespace
}  // namespace vfmgr::interop
