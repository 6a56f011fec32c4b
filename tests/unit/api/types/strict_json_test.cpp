// SPDX-License-Identifier: Apache-2.0
// Texts that are JSON, and the many that some parsers take for JSON.
#include <gtest/gtest.h>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

using namespace std::string_view_literals;

TEST(ParseJson, TakesWhatTheStandardSays) {
    for (auto const text : {"{}"sv, " \t\r\n{ } \n"sv, "[]"sv, "null"sv, "-0"sv, "1e-9"sv,
                            R"("\ud83d\ude00")"sv, R"("é\u0000")"sv, "18446744073709551616"sv,
                            R"([{"a": {"a": 1}}, {"a": 2}])"sv, R"({"a": 1, "A": 2})"sv})
        EXPECT_TRUE(parse_json(text)) << text;
    EXPECT_EQ(parse_json(R"({"a": [1, "é", null]})").value(),
              (nlohmann::json{{"a", {1, "é", nullptr}}}));
}

TEST(ParseJson, RefusesEverythingElse) {
    for (auto const text : {""sv,
                            " "sv,
                            "\0"sv,
                            "{"sv,
                            "}"sv,
                            "{}{}"sv,
                            "{} x"sv,
                            "{},"sv,
                            "{}\0"sv,
                            "{}\0garbage"sv,
                            "\0{}"sv,
                            "\"a\0b\""sv,
                            "\"a\nb\""sv,
                            "{a: 1}"sv,
                            "{'a': 1}"sv,
                            R"({"a" 1})"sv,
                            R"({"a": 1,})"sv,
                            R"({"a"})"sv,
                            R"({1: 1})"sv,
                            "[1,]"sv,
                            "[1 2]"sv,
                            "// c\n{}"sv,
                            "/* c */{}"sv,
                            "NaN"sv,
                            "Infinity"sv,
                            "-"sv,
                            "+1"sv,
                            "01"sv,
                            "1."sv,
                            ".5"sv,
                            "0x10"sv,
                            "1e999"sv,
                            "True"sv,
                            "\"\\x41\""sv,
                            "\"\\ud800\""sv,
                            "\"\xff\""sv,
                            "\"\xc3\""sv,
                            "\"\xc0\xaf\""sv,
                            "\"\xed\xa0\x80\""sv,
                            "\"\xf4\x90\x80\x80\""sv,
                            "\xff\xfe{\0}\0"sv}) {
        auto const document = parse_json(text);
        ASSERT_FALSE(document) << text << " was read as " << *document;
        EXPECT_EQ(document.error().problem, Problem::invalid_request);
        EXPECT_EQ(document.error().detail, "the body is not valid JSON");
        EXPECT_FALSE(document.error().remedy.empty());
    }
}

TEST(ParseJson, RefusesTheSameKeyTwice) {
    struct Row {
        char const *text, *key;
    };
    for (auto const& [text, key] : {Row{R"({"a": 1, "a": 1})", "a"},
                                    {R"({"a": 1, "b": 2, "a": null})", "a"},
                                    {R"({"a": 1, "\u0061": 2})", "a"},
                                    {R"({"": 1, "": 2})", ""},
                                    {R"([{"x": {"b": {}, "b": []}}])", "b"},
                                    {R"({"a": {"a": 1}, "c": [{}], "a": 2})", "a"},
                                    {R"({"a/~": 1, "a/~": 2})", "a~1~0"}}) {
        auto const document = parse_json(text);
        ASSERT_FALSE(document) << text;
        EXPECT_EQ(document.error().detail, std::string("the body has the key '") + key + "' twice");
    }
}

std::string nested(int levels, std::string const& open, std::string const& inside, char close) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    return text + inside + std::string(static_cast<std::size_t>(levels), close);
}

TEST(ParseJson, RefusesMoreThan32Levels) {
    for (auto const* inside : {"", "1", R"("a")"}) {
        EXPECT_TRUE(parse_json(nested(32, "[", inside, ']'))) << inside;
        auto const deeper = parse_json(nested(33, "[", inside, ']'));
        ASSERT_FALSE(deeper) << "33 levels around '" << inside << "'";
        EXPECT_EQ(deeper.error().detail, "the body is nested deeper than 32");
    }
    EXPECT_TRUE(parse_json(nested(32, R"({"a":)", "1", '}')));
    EXPECT_FALSE(parse_json(nested(33, R"({"a":)", "1", '}')));
    EXPECT_FALSE(parse_json(nested(33, R"({"a":)", "{}", '}')));
    EXPECT_FALSE(parse_json(nested(100000, "[", "", ']'))) << "and the stack holds";
    EXPECT_FALSE(parse_json(std::string(100000, '[')));
}

TEST(ToJsonText, NeverThrowsAtBytesThatAreNotUtf8) {
    EXPECT_EQ(to_json_text({{"comm", "qemu\xff\xc3"}}), "{\"comm\":\"qemu\uFFFD\uFFFD\"}");
    EXPECT_EQ(to_json_text({{"title", "é\n\x7f"}}), "{\"title\":\"é\\n\x7f\"}");
    EXPECT_EQ(to_json_text(nullptr), "null");
}

TEST(PointerToken, EscapesAndCuts) {
    auto const sixty_three = std::string(63, 'k');
    EXPECT_EQ(pointer_token(""), "");
    EXPECT_EQ(pointer_token("a~/b"), "a~0~1b");
    EXPECT_EQ(pointer_token("~1"), "~01");
    EXPECT_EQ(pointer_token(sixty_three + "k"), sixty_three + "k");
    EXPECT_EQ(pointer_token(sixty_three + "kk"), sixty_three + "k…");
    EXPECT_EQ(pointer_token(sixty_three + "é"), sixty_three + "…") << "no half of a character";
    EXPECT_EQ(pointer_token(std::string(64, '/') + "k").size(), 128 + std::string("…").size());
    EXPECT_EQ(pointer_token(std::string(100, '\x80')), "…");
}

}  // namespace
}  // namespace vfmgr
