// SPDX-License-Identifier: Apache-2.0
#include "api/types/text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfmgr {
namespace {

TEST(Terminal, IsNotSteered) {
    EXPECT_EQ(escaped("a\x1b[31mb\x7f", Shown::text), "a\\x1b[31mb\\x7f");
    EXPECT_EQ(escaped("a\xc2\x9b"
                      "31mb",
                      Shown::text),
              "a\\u009b31mb")
        << "C1's CSI";
    EXPECT_EQ(escaped("vm\u202etxt\u2066x\u061c", Shown::text), "vm\\u202etxt\\u2066x\\u061c");
    EXPECT_EQ(escaped("a\x9b"
                      "b\xff",
                      Shown::text),
              "a\\x9bb\\xff")
        << "no UTF-8";
    EXPECT_EQ(escaped("\xc0\x8a\xed\xa0\x80", Shown::word), "\\xc0\\x8a\\xed\\xa0\\x80");
    EXPECT_EQ(escaped("a\xe2\x80", Shown::text), "a\\xe2\\x80") << "cut";
    EXPECT_EQ(escaped("a\u2028b\U000e0041", Shown::word), "a\\u2028b\\ue0041");
}

TEST(Terminal, ShowsWhatPeopleWrite) {
    for (auto const* const text : {"", "db1", "größe … 数据 \U0001f600", "a\u00a0b"})
        for (auto const as : {Shown::word, Shown::text, Shown::json})
            EXPECT_EQ(escaped(text, as), text);
    EXPECT_EQ(escaped("a\tb\nc\r\n", Shown::text), "a\tb\nc\r\n");
    EXPECT_EQ(escaped("all is well\rnot", Shown::text), "all is well\\x0dnot");
    EXPECT_EQ(escaped("a\nb\tc", Shown::word), "a\\x0ab\\x09c");
}

TEST(Terminal, TakesJsonAsTheSameDocument) {
    nlohmann::json const document{{"name", "a\x1b\u202e\u009b\U000e0041\u061c\nb"}};
    for (int const indent : {-1, 2}) {
        auto const shown = escaped(document.dump(indent), Shown::json);
        EXPECT_EQ(nlohmann::json::parse(shown), document);
        EXPECT_EQ(shown.find("\u202e"), shown.npos);
        EXPECT_EQ(shown.find("\xc2\x9b"), shown.npos);
    }
}

// A pair of surrogates is one character in JSON, and two in YAML.
TEST(Terminal, TakesYamlAsTheSameDocument) {
    EXPECT_EQ(escaped("\"a\u202e\u009b\x7f\U000e0041é\"\n", Shown::yaml),
              "\"a\\u202e\\u009b\\u007f\\U000e0041é\"\n");
}

}  // namespace
}  // namespace vfmgr
