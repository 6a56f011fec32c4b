// SPDX-License-Identifier: Apache-2.0
#include "api/types/text.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST(ParseDigits, TakesDigitsWithinTheRules) {
    EXPECT_EQ(parse_digits("0", {}), 0U);
    EXPECT_EQ(parse_digits("007", {}), 7U);
    EXPECT_EQ(parse_digits("18446744073709551615", {}), UINT64_MAX);
    EXPECT_EQ(parse_digits("fF", {.base = 16}), 255U);
    EXPECT_EQ(parse_digits("4094", {.max = 4094}), 4094U);
    EXPECT_EQ(parse_digits("12", {.digits_min = 2, .digits_max = 2}), 12U);
}

TEST(ParseDigits, RefusesEverythingElse) {
    for (auto const text : {""sv, "-1"sv, "-0"sv, "+1"sv, " 1"sv, "1 "sv, "1\n"sv, "1.0"sv, "1e3"sv,
                            "0x1"sv, "a"sv, "1\0"sv, "\0"sv, "٣"sv, "18446744073709551616"sv,
                            "99999999999999999999"sv, "000000000000000000001"sv})
        EXPECT_EQ(parse_digits(text, {}), std::nullopt) << text;
    EXPECT_EQ(parse_digits("4095", {.max = 4094}), std::nullopt);
    EXPECT_EQ(parse_digits("1", {.digits_min = 2, .digits_max = 2}), std::nullopt);
    EXPECT_EQ(parse_digits("123", {.digits_min = 2, .digits_max = 2}), std::nullopt);
    EXPECT_EQ(parse_digits("8", {.base = 8}), std::nullopt);
    EXPECT_EQ(parse_digits("-f", {.base = 16}), std::nullopt);
    EXPECT_EQ(parse_digits("", {.digits_min = 0}), std::nullopt);
}

TEST(TakeUntil, TakesTheHeadAndTheSeparator) {
    std::string_view rest = "a::b";
    EXPECT_EQ(take_until(rest, ':'), "a");
    EXPECT_EQ(take_until(rest, ':'), "");
    EXPECT_EQ(rest, "b");
    EXPECT_EQ(take_until(rest, ':'), std::nullopt);
    EXPECT_EQ(rest, "b") << "nothing is taken off without a separator";
    rest = "b:";
    EXPECT_EQ(take_until(rest, ':'), "b");
    EXPECT_EQ(rest, "");
}

TEST(Quoted, IsSafeOnATerminal) {
    EXPECT_EQ(quoted(""), "''");
    EXPECT_EQ(quoted("vm 1"), "'vm 1'");
    EXPECT_EQ(quoted("a'b\n\x1b[2J\x7f\0é"sv),
              "'a?b?"
              "?[2J?"
              "?"
              "?"
              "?'");
    EXPECT_EQ(quoted(std::string(80, 'a')), "'" + std::string(80, 'a') + "'");
    EXPECT_EQ(quoted(std::string(81, 'a')), "'" + std::string(80, 'a') + "…'");
}

}  // namespace
}  // namespace vfmgr
