// SPDX-License-Identifier: Apache-2.0
// What every value whose JSON is one string must do with any text. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::test {

struct Written {
    std::string_view text;
    std::string_view canonical;  // the result of to_string()
};

template <class T>
void expect_refused(std::string_view text) {
    auto const value = T::parse(text);
    ASSERT_FALSE(value) << "'" << text << "' was read as " << to_string(*value);
    EXPECT_EQ(value.error().problem, Problem::invalid_request);
    EXPECT_FALSE(value.error().remedy.empty()) << text;
    EXPECT_LT(value.error().detail.size(), 200U) << "an overlong text is not repeated";
    for (char const byte : value.error().detail)
        EXPECT_FALSE(static_cast<unsigned char>(byte) < 0x20) << "a terminal would obey it";
}

template <class T>
void expect_refused(std::initializer_list<std::string_view> texts) {
    for (auto const text : texts) expect_refused<T>(text);
}

// Text before or after a value makes it another text, never the same value.
template <class T>
void expect_nothing_around(std::string const& text) {
    using namespace std::string_literals;
    for (auto const& garbage : {" "s, "\n"s, "\0"s, "é"s, "-"s, "+"s, "/"s, "\0x"s}) {
        expect_refused<T>(text + garbage);
        expect_refused<T>(garbage + text);
    }
    expect_refused<T>(text + text);
    std::string many;
    for (int i = 0; i < 1000; ++i) many += text;
    expect_refused<T>(many);
}

template <class T>
void expect_read(std::initializer_list<Written> texts) {
    for (auto const& [text, canonical] : texts) {
        auto const value = T::parse(text);
        ASSERT_TRUE(value) << text << ": " << value.error().detail;
        EXPECT_EQ(to_string(*value), canonical) << text;
        auto const again = T::parse(canonical);
        ASSERT_TRUE(again) << canonical << ": " << again.error().detail;
        EXPECT_EQ(*again, *value) << canonical;
        expect_nothing_around<T>(std::string(text));
    }
}

}  // namespace vfmgr::test
