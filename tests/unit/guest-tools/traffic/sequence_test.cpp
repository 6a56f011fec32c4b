// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/tally.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace vfmgr::stream {
namespace {

Sequence taken(std::vector<std::uint64_t> const& numbers) {
    Sequence sequence;
    for (auto const number : numbers) sequence.take(number);
    return sequence;
}

std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> numbers(to - from);
    std::iota(numbers.begin(), numbers.end(), from);
    return numbers;
}

TEST(Sequence, AllInOrder) {
    auto const sequence = taken(range(0, 1000));
    EXPECT_EQ(sequence.counts(), (SequenceCounts{.received = 1000}));
    EXPECT_EQ(sequence.lost_of(1000), 0U);
}

TEST(Sequence, NothingCame) {
    Sequence const sequence;
    EXPECT_EQ(sequence.lost_of(0), 0U);
    EXPECT_EQ(sequence.lost_of(7), 7U);
}

TEST(Sequence, HeadGapAndTailAreLost) {
    auto const sequence = taken({2, 3, 6});
    EXPECT_EQ(sequence.counts(), (SequenceCounts{.received = 3, .missing = 4}));
    EXPECT_EQ(sequence.lost_of(7), 4U);
    EXPECT_EQ(sequence.lost_of(10), 7U);
}

TEST(Sequence, MoreCameThanWereSent) {
    EXPECT_EQ(taken({0, 1, 2}).lost_of(2), std::nullopt);
}

TEST(Sequence, LateOnesAreNotLost) {
    auto const sequence = taken({0, 3, 1, 2, 4});
    EXPECT_EQ(sequence.counts(), (SequenceCounts{.received = 5, .out_of_order = 2}));
    EXPECT_EQ(sequence.lost_of(5), 0U);
}

TEST(Sequence, DoublesAreCountedApart) {
    auto const sequence = taken({0, 0, 2, 1, 1, 2, 0});
    EXPECT_EQ(sequence.counts(),
              (SequenceCounts{.received = 3, .out_of_order = 1, .duplicates = 4}));
    EXPECT_EQ(sequence.lost_of(3), 0U);
}

TEST(Sequence, TheWindowIsExactToItsEdge) {
    constexpr auto w = sequence_window;
    Sequence sequence;
    sequence.take(0);
    sequence.take(w + 1);
    sequence.take(2);  // w below the next number: the oldest one distinguishable
    EXPECT_EQ(sequence.counts(),
              (SequenceCounts{.received = 3, .missing = w - 1, .out_of_order = 1}));
    sequence.take(2);
    sequence.take(1);
    EXPECT_EQ(
        sequence.counts(),
        (SequenceCounts{
            .received = 3, .missing = w - 1, .out_of_order = 1, .duplicates = 1, .too_late = 1}));
    EXPECT_EQ(sequence.lost_of(w + 2), w - 1);
}

// Slots from a window ago are reused: they count neither as duplicates nor as received.
TEST(Sequence, WhatWasAWindowAgoIsForgotten) {
    constexpr auto w = sequence_window;
    auto sequence = taken(range(0, w));
    sequence.take(w + 5);
    for (std::uint64_t i = 0; i < 5; ++i) sequence.take(w + i);
    EXPECT_EQ(sequence.counts(), (SequenceCounts{.received = w + 6, .out_of_order = 5}));
    sequence.take(5 * w);
    sequence.take(5 * w - 1);
    EXPECT_EQ(sequence.counts().duplicates, 0U);
    EXPECT_EQ(sequence.counts().out_of_order, 6U);
    EXPECT_EQ(sequence.lost_of(5 * w + 1), 4 * w - 7);
}

TEST(Sequence, CountsBeyond32Bits) {
    constexpr std::uint64_t far = std::uint64_t{1} << 40;
    auto const sequence = taken({far, far - 1});
    EXPECT_EQ(sequence.counts().missing, far - 1);
    EXPECT_EQ(sequence.lost_of(far + 1), far - 1);
}

// Compares with a set, for any losses, duplicates and swaps.
TEST(Sequence, AgreesWithASet) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 20; ++round) {
        std::vector<std::uint64_t> came;
        for (auto const number : range(0, 20'000)) {
            if (random() % 50 == 0) continue;
            came.push_back(number);
            if (random() % 70 == 0) came.push_back(number);
        }
        for (std::size_t i = 0; i + 300 < came.size(); i += 7)
            std::swap(came[i], came[i + random() % 300]);
        std::set<std::uint64_t> unique;
        SequenceCounts expected;
        for (auto const number : came) {
            bool const behind = !unique.empty() && number < *unique.rbegin();
            if (unique.insert(number).second)
                expected.out_of_order += behind ? 1 : 0;
            else
                ++expected.duplicates;
        }
        expected.received = unique.size();
        expected.missing = *unique.rbegin() + 1 - unique.size();
        auto const sequence = taken(came);
        EXPECT_EQ(sequence.counts(), expected);
        EXPECT_EQ(sequence.lost_of(20'000), 20'000 - unique.size());
    }
}

}  // namespace
}  // namespace vfmgr::stream
