// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/event_vector.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace vfmgr::fleet {
namespace {

EventVector vector_of(std::map<std::uint32_t, std::uint64_t> const& places) {
    EventVector vector;
    for (auto const& [host, number] : places) vector.put(host, number);
    return vector;
}

TEST(EventVector, KeepsOnePlaceForEachHost) {
    EventVector vector;
    vector.put(7, 1);
    vector.put(3, 2);
    vector.put(7, 9);
    EXPECT_EQ(vector, vector_of({{3, 2}, {7, 9}}));
    EXPECT_EQ(vector.at(7), 9U);
    EXPECT_EQ(vector.at(4), std::nullopt);
    vector.erase(3);
    vector.erase(4);
    EXPECT_EQ(vector, vector_of({{7, 9}}));
}

TEST(EventVector, AThousandHostsFitAHeader) {
    std::map<std::uint32_t, std::uint64_t> places;
    for (std::uint32_t host = 1; host <= 1000; ++host) places[host] = 10'000'000 + host;
    EXPECT_EQ(vector_of(places).text().size(), 6673U);
    for (std::uint32_t host = 1; host <= 2000; ++host) places[host] = 100'000'000'000 + host;
    EXPECT_EQ(vector_of(places).text().size(), 18'673U) << "of 2,000 hosts beyond one";
}

TEST(EventVector, RefusesOtherTexts) {
    auto const text = vector_of({{3, 2}, {7, 900}}).text();
    ASSERT_TRUE(EventVector::parse(text));
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto changed = text;
        changed[i] = changed[i] == 'B' ? 'C' : 'B';
        EXPECT_FALSE(EventVector::parse(changed)) << changed;
        EXPECT_FALSE(EventVector::parse(text.substr(0, i))) << i;
    }
    for (char const* const other : {"", "a", "41", "a====", "a AAA", "b"})
        EXPECT_FALSE(EventVector::parse(other)) << other;
    EXPECT_FALSE(EventVector::parse(text + "A"));
    EXPECT_FALSE(EventVector::parse(std::string(200'000, 'a')));
    EXPECT_EQ(EventVector::parse("zAAA").error().detail,
              "the id 'zAAA' is of another version of vfmgr-fleetd");
}

RC_GTEST_PROP(EventVector, ComesBackFromItsText, ()) {
    auto const vector = vector_of(*rc::gen::arbitrary<std::map<std::uint32_t, std::uint64_t>>());
    auto const parsed = EventVector::parse(vector.text());
    RC_ASSERT(parsed.has_value());
    RC_ASSERT(*parsed == vector);
}

}  // namespace
}  // namespace vfmgr::fleet
