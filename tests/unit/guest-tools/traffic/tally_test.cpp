// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/tally.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "guest-tools/traffic/pacer.hpp"

namespace vfmgr::stream {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t ours = 77;
constexpr Deadline began{50s};

struct TallyTest : testing::Test {
    Tally tally{ours, 64, began};

    void take(std::uint64_t number, std::uint64_t of_run = ours, std::size_t bytes = 64) {
        std::vector<std::byte> packet(bytes);
        prepare_packet(packet, of_run);
        number_packet(packet, of_run, number);
        tally.take(packet);
    }
};

TEST_F(TallyTest, WhatIsNotOfTheRunIsCountedApart) {
    take(0);
    take(1, ours + 1);
    take(1, ours, 63);
    take(1, ours, 65);
    tally.take({});
    auto const summary = tally.summary(Ending{.packets = 3});
    EXPECT_EQ(summary.foreign, 4U);
    EXPECT_EQ(summary.received, 1U);
    EXPECT_EQ(summary.lost, 2U);
}

TEST_F(TallyTest, WhatWasLookedAtElsewhereCountsAsWell) {
    tally.take(64, 0);
    tally.take(64, 2);
    tally.take(64, std::nullopt);
    tally.take(63, 1);  // a number, of packets of another length
    auto const summary = tally.summary(Ending{.packets = 3});
    EXPECT_EQ(summary.received, 2U);
    EXPECT_EQ(summary.foreign, 2U);
    EXPECT_EQ(summary.lost, 1U);
}

TEST_F(TallyTest, SecondsAreDifferences) {
    for (std::uint64_t const number : {0U, 1U, 4U, 4U}) take(number);
    EXPECT_EQ(tally.interval(began + 1s, 10),
              (Interval{1'000'000, 1'000'000, 3, 192, 2, 0, 1, 0, 10}));
    // The two missing ones come late, and one of another run.
    for (std::uint64_t const number : {2U, 3U, 5U}) take(number);
    take(6, ours + 1);
    EXPECT_EQ(tally.interval(began + 2500ms, 12),
              (Interval{2'500'000, 1'500'000, 3, 192, -2, 2, 0, 1, 2}));
    EXPECT_EQ(tally.interval(began + 3s, 12), (Interval{3'000'000, 500'000, 0, 0, 0, 0, 0, 0, 0}));
    // Packets after the last whole second get the time until they came.
    EXPECT_EQ(tally.rest(12), std::nullopt);
    take(6);
    tally.taken_at(began + 3200ms);
    EXPECT_EQ(tally.rest(13), (Interval{3'200'000, 200'000, 1, 64, 0, 0, 0, 0, 1}));
    EXPECT_EQ(tally.rest(13), std::nullopt);
}

TEST_F(TallyTest, ItsTimeIsFromTheFirstOfTheRunToTheLast) {
    take(0, ours + 1);
    tally.taken_at(began + 1s);
    take(0);
    tally.taken_at(began + 2s);
    take(1);
    tally.taken_at(began + 5s);
    take(2, ours + 1);
    tally.taken_at(began + 9s);
    EXPECT_EQ(tally.summary({}).microseconds, 3'000'000U);
    EXPECT_EQ(tally.summary({}).timed, 1U);
    EXPECT_EQ(tally.last_at(), began + 5s);
}

TEST_F(TallyTest, WithoutTheSendersWordTheLossIsNotKnown) {
    take(0);
    take(2);
    auto const summary = tally.summary({});
    EXPECT_EQ(summary.lost, std::nullopt);
    EXPECT_EQ(summary.missing, 1U);
    EXPECT_FALSE(summary.nothing_lost());
}

}  // namespace
}  // namespace vfmgr::stream
