// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/device.hpp"

#include <gmock/gmock.h>

#include "vfmgr/proof/latency.hpp"
#include "vfmgr/rdma/completion.hpp"

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;

TEST(Gid, IsTheAddress) {
    auto const gid = IpAddress::parse("192.168.100.10")->gid();
    EXPECT_EQ(gid_hex(gid), "00000000000000000000ffffc0a8640a");
    EXPECT_EQ(gid_text(gid), "0000:0000:0000:0000:0000:ffff:c0a8:640a");
    EXPECT_EQ(parse_gid(gid_hex(gid)).value(), gid);
}

TEST(Gid, OnlyThirtyTwoHexDigits) {
    for (auto const* text :
         {"", "00", "0000000000000000000000000000000", "+0000000000000000000000000000000",
          "0000000000000000000000000000000g", "0x00000000000000000000ffffc0a8640",
          "000000000000000000000000000000000"})
        EXPECT_FALSE(parse_gid(text)) << text;
}

TEST(PathMtu, IsOneOfFive) {
    EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256U);
    EXPECT_EQ(mtu_bytes(IBV_MTU_4096), 4096U);
    EXPECT_EQ(mtu_bytes(static_cast<ibv_mtu>(0)), 0U);
    EXPECT_EQ(mtu_of_bytes(1024).value(), IBV_MTU_1024);
    EXPECT_FALSE(mtu_of_bytes(1500));
    EXPECT_FALSE(mtu_of_bytes(0));
}

TEST(FindPort, SaysWhichNetdevIsMissing) {
    auto const endpoint = open_endpoint({*IpAddress::parse("192.0.2.1"), "no-such-dev0"},
                                        std::chrono::milliseconds(0));
    ASSERT_FALSE(endpoint);
    EXPECT_EQ(endpoint.error().detail, "there is no netdev no-such-dev0");
}

TEST(FindPort, SaysWhatIsMissingOnThisMachine) {
    // TEST-NET-1: no machine has it, with or without RDMA.
    auto const endpoint =
        open_endpoint({*IpAddress::parse("192.0.2.1"), "lo"}, std::chrono::milliseconds(0));
    ASSERT_FALSE(endpoint);
    EXPECT_EQ(endpoint.error().problem, Problem::unsupported);
    EXPECT_THAT(endpoint.error().detail, HasSubstr("RDMA device"));
    EXPECT_NE(endpoint.error().remedy, "");
}

TEST(Completion, SaysWhatHappenedAndWhatToDo) {
    ibv_wc completion{};
    completion.status = IBV_WC_RETRY_EXC_ERR;
    completion.vendor_err = 0x81;
    auto const error = completion_error(completion, "RC ping 3");
    EXPECT_EQ(
        error.detail,
        "RC ping 3 failed with \"transport retry counter exceeded\" (status 12, vendor code 0x81)");
    EXPECT_THAT(error.remedy, HasSubstr("4791"));
}

TEST(Latency, SummaryKeepsEverySample) {
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = 1000; i > 0; --i) samples.push_back(i * 1000);
    auto const figures = summarise(samples);
    EXPECT_EQ(figures.at("min_us"), 1);
    EXPECT_EQ(figures.at("p50_us"), 500);
    EXPECT_EQ(figures.at("p90_us"), 900);
    EXPECT_EQ(figures.at("p99_us"), 990);
    EXPECT_EQ(figures.at("p999_us"), 999);
    EXPECT_EQ(figures.at("max_us"), 1000);
    EXPECT_EQ(figures.at("samples"), 1000);
    EXPECT_EQ(summarise({7000}).at("p50_us"), 7);
    EXPECT_TRUE(summarise({}).empty());
}

TEST(Ticks, AreAClockWhenBothHalvesSayTheSame) {
    std::vector<Mark> marks{{1000, 0}, {4000, 1000}, {7000, 2000}, {10'000, 3000}};
    EXPECT_DOUBLE_EQ(tick_nanoseconds(marks).value(), 1.0 / 3);
    marks[3].nanoseconds = 3010;  // 0.5 % off
    EXPECT_TRUE(tick_nanoseconds(marks));
    marks[3].nanoseconds = 3200;  // the CPU has changed its clock rate
    EXPECT_FALSE(tick_nanoseconds(marks));
}

TEST(Ticks, AreNoClockWhenTheyStandOrGoBack) {
    EXPECT_FALSE(tick_nanoseconds(std::vector<Mark>{{0, 0}, {0, 1000}, {0, 2000}}));
    EXPECT_FALSE(tick_nanoseconds(std::vector<Mark>{{9, 0}, {5, 1000}, {20, 2000}}));
    EXPECT_FALSE(tick_nanoseconds(std::vector<Mark>{{0, 0}, {1000, 1000}}));
    EXPECT_FALSE(tick_nanoseconds({}));
}

}  // namespace
}  // namespace vfmgr::verify
