// SPDX-License-Identifier: Apache-2.0
#include "api/types/guest_keys.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

Time const now{1'000'000s};
GuestSecret const token{"t", now + 1h};
GuestSecret const had{"k", now + 1h};
GuestSecret const made{"m", now + 2h};

TEST(GuestKeys, ATokenIsGoodOnceAndItsKeyReplacesAllOthers) {
    GuestKeys const keys{"aaaa0001", token, {had}};
    auto const first = enrolled(keys, "t", made, now).value();
    EXPECT_EQ(first, (GuestKeys{"aaaa0001", {}, {made}}));
    EXPECT_EQ(enrolled(first, "t", made, now).error().problem, Problem::unauthorized);
}

TEST(GuestKeys, AKeyIsRenewedAndStaysGoodUntilItsOwnEnd) {
    auto const renewed = enrolled({"aaaa0001", token, {had}}, "k", made, now).value();
    EXPECT_EQ(renewed, (GuestKeys{"aaaa0001", token, {had, made}}));
    EXPECT_TRUE(opens(renewed.keys, "k", now)) << "the answer may be lost";
    EXPECT_FALSE(opens(renewed.keys, "k", now + 1h));
    EXPECT_TRUE(opens(renewed.keys, "m", now + 1h));
    auto const again = enrolled(renewed, "m", {"n", now + 3h}, now).value();
    EXPECT_EQ(again.keys.size(), 2U) << "never more";
    EXPECT_FALSE(opens(again.keys, "k", now));
}

TEST(GuestKeys, NothingElseIsTaken) {
    GuestKeys const keys{"aaaa0001", token, {had}};
    for (auto const* const shown : {"", "x", "T"})
        EXPECT_EQ(enrolled(keys, shown, made, now).error().problem, Problem::unauthorized) << shown;
    for (auto const* const shown : {"t", "k"})
        EXPECT_FALSE(enrolled(keys, shown, made, now + 1h)) << shown << " has expired";
    EXPECT_FALSE(opens({}, "", now));
}

}  // namespace
}  // namespace vfmgr
