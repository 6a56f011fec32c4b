// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/pacer.hpp"

#include <gtest/gtest.h>

namespace vfmgr::stream {
namespace {

using namespace std::chrono_literals;
constexpr Deadline start{1000s};

TEST(Pacer, PacketsAreDueByTheRateOfBits) {
    Pacer const pacer(start, {1250 * 8, 100'000'000});  // 100 us each
    EXPECT_EQ(pacer.due(0), start);
    EXPECT_EQ(pacer.due(1), start + 100us);
    EXPECT_EQ(pacer.due(16), start + 1600us);
    EXPECT_EQ(pacer.due(10'000), start + 1s);
}

TEST(Pacer, PacketsAreDueByTheRateOfPackets) {
    Pacer const pacer(start, {1, 3});
    EXPECT_EQ(pacer.due(1), start + 333'333'334ns);  // not a nanosecond early
    EXPECT_EQ(pacer.due(2), start + 666'666'667ns);
    EXPECT_EQ(pacer.due(3), start + 1s);
}

TEST(Pacer, DoesNotDriftInAYear) {
    // A packet takes 117 760.012… ns: with rounding each time, a year would be off by minutes.
    Pacer const pacer(start, {1472 * 8, 99'999'989});
    constexpr std::uint64_t packets = 99'999'989ULL * 2678;
    EXPECT_EQ(pacer.due(packets), start + 1472s * 8 * 2678);
}

TEST(Pacer, ATimeHoldsWhatTheRateAllows) {
    Pacer const bits(start, {1472 * 8, 100'000'000});
    EXPECT_EQ(bits.packets_in(10s), 84'918U);  // 84918.47
    EXPECT_EQ(bits.packets_in(1ms), 8U);
    EXPECT_EQ(Pacer(start, {1, 3}).packets_in(1s), 3U);
    EXPECT_EQ(Pacer(start, {1472 * 8, 1}).packets_in(10s), 1U);
    EXPECT_EQ(Pacer(start, {256, 10'000'000'000'000}).packets_in(24h * 30),
              101'250'000'000'000'000U);
}

TEST(Pacer, WhatIsNeverDueOverflowsNothing) {
    Pacer const pacer(start, {65'507 * 8, 1});
    EXPECT_EQ(pacer.due(std::uint64_t{1} << 62), start + 1'000'000'000s);
}

TEST(Pacer, AChunkIsLateWhenTheNextIsDue) {
    Pacer pacer(start, {1, 1000});
    pacer.count_sent(0, 16, start);
    pacer.count_sent(16, 16, start + 32ms - 1ns);
    EXPECT_EQ(pacer.lateness(), (Lateness{2, 0, 0}));
    pacer.count_sent(32, 16, start + 48ms);
    EXPECT_EQ(pacer.lateness(), (Lateness{3, 1, 16'000}));
    pacer.count_sent(48, 16, start + 65ms);
    EXPECT_EQ(pacer.lateness(), (Lateness{4, 2, 17'000}));
    // The next are due at the same times as before: late packets shifted nothing.
    EXPECT_EQ(pacer.due(64), start + 64ms);
    pacer.count_sent(64, 16, start + 65ms);
    EXPECT_EQ(pacer.lateness(), (Lateness{5, 2, 17'000}));
}

}  // namespace
}  // namespace vfmgr::stream
