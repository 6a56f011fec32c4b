// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/share.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace vfmgr::interop {
namespace {

using testing::HasSubstr;

constexpr ShareLimits small{{4, 1, 12}, {6, 2, 100}};

TEST(Shares, EachAttachmentHasItsPart) {
    Shares shares(small);
    std::vector<Shares::Share> held;
    for (int i = 0; i < 4; ++i) {
        auto one = shares.take("a", {1, 0, 1});
        ASSERT_TRUE(one);
        held.push_back(std::move(*one));
    }
    auto const refused = shares.take("a", {1, 0, 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
    EXPECT_THAT(refused.error().detail,
                HasSubstr("this attachment's interop clients already have 4 queue"));
    EXPECT_TRUE(shares.take("b", {1, 0, 1}));
    held.pop_back();
    EXPECT_TRUE(shares.take("a", {1, 0, 1}));
}

TEST(Shares, AllTogetherHaveALimit) {
    Shares shares(small);
    auto const a = shares.take("a", {4, 0, 0});
    auto const b = shares.take("b", {2, 0, 0});
    ASSERT_TRUE(a && b);
    auto const refused = shares.take("c", {1, 0, 0});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail,
                HasSubstr("the interop clients of this host already have 6"));
}

TEST(Shares, SpinningThreadsAndDescriptorsAreCountedByThemselves) {
    Shares shares(small);
    auto const spins = shares.take("a", taken_by_pair(InteropTest::write_echo));
    ASSERT_TRUE(spins);
    EXPECT_THAT(shares.take("a", taken_by_pair(InteropTest::send_echo)).error().detail,
                HasSubstr("take a CPU"));
    auto const waits = shares.take("a", taken_by_pair(InteropTest::send));
    ASSERT_TRUE(waits) << "it waits for events";
    EXPECT_THAT(shares.take("a", {0, 0, 7}).error().detail, HasSubstr("descriptors"));
}

TEST(Shares, WhatIsRefusedTakesNothingAndWhatEndsReturnsItsPart) {
    Shares shares(small);
    EXPECT_FALSE(shares.take("a", {1, 2, 1}));
    {
        auto const one = shares.take("a", {1, 1, 1});
        EXPECT_EQ(shares.taken().pairs, 1U);
    }
    EXPECT_EQ(shares.taken().pairs, 0U);
    EXPECT_EQ(shares.taken().spinning, 0U);
    EXPECT_EQ(shares.taken().descriptors, 0U);
}

}  // namespace
}  // namespace vfmgr::interop
