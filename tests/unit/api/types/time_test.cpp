// SPDX-License-Identifier: Apache-2.0
#include "api/types/time.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace vfmgr {
namespace {

using namespace std::string_view_literals;
using std::chrono::nanoseconds;

Time at(std::int64_t milliseconds) {
    return Time(std::chrono::milliseconds(milliseconds));
}

TEST(Rfc3339, IsReadAsAnInstant) {
    struct Row {
        char const* text;
        std::int64_t milliseconds;
    };
    for (auto const& [text, milliseconds] : {Row{"1970-01-01T00:00:00Z", 0},
                                             {"1970-01-01T00:00:00.001Z", 1},
                                             {"1970-01-01T01:00:00+01:00", 0},
                                             {"2026-01-31T12:00:00.000Z", 1769860800000},
                                             {"2026-01-31T12:00:00.5Z", 1769860800500},
                                             {"2026-01-31T17:30:00+05:30", 1769860800000},
                                             {"2026-01-30T23:59:00-12:01", 1769860800000},
                                             {"2026-01-31T12:00:00-00:00", 1769860800000},
                                             {"2024-02-29T00:00:00Z", 1709164800000},
                                             {"2000-02-29T23:59:59.999Z", 951868799999},
                                             {"2200-12-31T23:59:59.999Z", 7289654399999}}) {
        auto const time = parse_rfc3339(text);
        ASSERT_TRUE(time) << text;
        EXPECT_EQ(*time, at(milliseconds)) << text;
        EXPECT_EQ(parse_rfc3339(to_rfc3339(*time)), time) << text;
    }
    EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.123456789Z"), Time(nanoseconds(123456789)));
}

TEST(Rfc3339, RefusesWhatIsNoInstant) {
    for (auto const text : {""sv,
                            "2026"sv,
                            "2026-01-31"sv,
                            "2026-01-31T12:00:00"sv,
                            "2026-01-31T12:00Z"sv,
                            "2026-01-31 12:00:00Z"sv,
                            "2026-01-31t12:00:00z"sv,
                            "26-01-31T12:00:00Z"sv,
                            "02026-01-31T12:00:00Z"sv,
                            "-026-01-31T12:00:00Z"sv,
                            "+026-01-31T12:00:00Z"sv,
                            "2026-1-31T12:00:00Z"sv,
                            "2026-00-31T12:00:00Z"sv,
                            "2026-13-01T12:00:00Z"sv,
                            "2026-01-00T12:00:00Z"sv,
                            "2026-04-31T12:00:00Z"sv,
                            "2026-02-29T12:00:00Z"sv,
                            "2100-02-29T12:00:00Z"sv,
                            "2026-01-31T24:00:00Z"sv,
                            "2026-01-31T12:60:00Z"sv,
                            "2026-01-31T12:00:60Z"sv,
                            "2026-01-31T12:00:-1Z"sv,
                            "2026-01-31T12:00:00.Z"sv,
                            "2026-01-31T12:00:00,5Z"sv,
                            "2026-01-31T12:00:00.1234567890Z"sv,
                            "2026-01-31T12:00:00.-12Z"sv,
                            "2026-01-31T12:00:00+1:00"sv,
                            "2026-01-31T12:00:00+24:00"sv,
                            "2026-01-31T12:00:00+01:60"sv,
                            "2026-01-31T12:00:00+0100"sv,
                            "2026-01-31T12:00:00+-1:00"sv,
                            "2026-01-31T12:00:00ZZ"sv,
                            "2026-01-31T12:00:00Z "sv,
                            " 2026-01-31T12:00:00Z"sv,
                            "2026-01-31T12:00:00Z\0"sv,
                            "2026-01-31T12:00:0\0Z"sv,
                            "٢026-01-31T12:00:00Z"sv,
                            "1969-12-31T23:59:59Z"sv,
                            "2201-01-01T00:00:00Z"sv,
                            "9999-12-31T23:59:59Z"sv,
                            "18446744073709551616-01-31T12:00:00Z"sv})
        EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
}

// Parsed times are written, stored and parsed again: an offset must keep them readable.
TEST(Rfc3339, OffsetsStayWithinWhatCanBeReadAgain) {
    EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00+00:01"), std::nullopt);
    EXPECT_EQ(parse_rfc3339("2200-12-31T23:59:59-00:01"), std::nullopt);
    EXPECT_EQ(parse_rfc3339("1969-12-31T23:59:00-00:01"), std::nullopt);
    EXPECT_EQ(parse_rfc3339("2201-01-01T00:00:00+00:01"), std::nullopt);
}

TEST(Rfc3339, IsWrittenWithMillisecondsWhichAreNeverRoundedUp) {
    struct Row {
        Time time;
        char const* text;
    };
    for (auto const& [time, text] : {Row{at(0), "1970-01-01T00:00:00.000Z"},
                                     {Time(nanoseconds(999999999)), "1970-01-01T00:00:00.999Z"},
                                     {at(1769860800007), "2026-01-31T12:00:00.007Z"},
                                     {at(-1), "1969-12-31T23:59:59.999Z"},
                                     {Time(nanoseconds(-1)), "1969-12-31T23:59:59.999Z"},
                                     {Time::max(), "2262-04-11T23:47:16.854Z"}})
        EXPECT_EQ(to_rfc3339(time), text);
}

TEST(SystemClock, IsAsExactAsItsText) {
    auto const now = system_clock().now();
    EXPECT_EQ(parse_rfc3339(to_rfc3339(now)), now);
    auto const earlier = system_clock().steady_now();
    EXPECT_GE(system_clock().steady_now(), earlier);
}

}  // namespace
}  // namespace vfmgr
