// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/json_slices.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfmgr::fleet {
namespace {

std::string compact(std::string_view text, int depth_max = 4) {
    auto const out = compact_json(text, {1000, depth_max});
    return out ? *out : "refused: " + out.error().detail;
}

TEST(CompactJson, KeepsTheTextWithoutItsWhiteSpace) {
    EXPECT_EQ(compact(" { \"a\" : [ 1 ,\n-2.50e+3 , true , null ] ,\t\"b c\" : \"x  \\n\" }\r\n"),
              R"({"a":[1,-2.50e+3,true,null],"b c":"x  \n"})");
    EXPECT_EQ(compact("{}"), "{}");
    EXPECT_EQ(compact(" [ ] "), "[]");
    EXPECT_EQ(compact(R"("\ud83d\ude00 ü")"), R"("\ud83d\ude00 ü")");
}

TEST(CompactJson, RefusesWhatIsNotOneValue) {
    for (char const* const text :
         {"",          " ",           "{",           "[1",       "[1,]",     "{\"a\"}",
          "{\"a\":}",  "{\"a\":1,}",  "{a:1}",       "1 2",      "01",       "-",
          "1.",        "1e",          "+1",          "tru",      "\"a",      "\"\\x\"",
          "\"\\u12\"", "\"\\ud83d\"", "\"\\ude00\"", "\"a\nb\"", "\"\x80\"", "nul"})
        EXPECT_TRUE(compact(text).starts_with("refused: ")) << text;
    EXPECT_TRUE(compact(std::string("1\0", 2)).starts_with("refused: "));
}

TEST(CompactJson, IsBounded) {
    EXPECT_EQ(compact("[[[[1]]]]"), "[[[[1]]]]");
    EXPECT_EQ(compact("[[[[[1]]]]]"), "refused: the JSON is nested too deep");
    EXPECT_TRUE(compact(std::string(1001, ' ')).starts_with("refused: "));
    EXPECT_FALSE(compact_json(std::string(200'000, '['), {1'000'000}));
}

TEST(JsonSlices, WalkMembersAndElements) {
    auto const text = compact(R"({"a": {"x": "},"}, "\u0062": [1, "]", [2]], "c": "\"", "d": 7})");
    std::vector<std::pair<std::string, std::string>> members;
    for (Members walk(text); walk.next();) members.emplace_back(walk.key(), walk.value());
    std::vector<std::pair<std::string, std::string>> const expected{
        {"a", R"({"x":"},"})"}, {"b", R"([1,"]",[2]])"}, {"c", R"("\"")"}, {"d", "7"}};
    EXPECT_EQ(members, expected);
    std::vector<std::string> elements;
    for (Elements walk(members[1].second); walk.next();) elements.emplace_back(walk.value());
    EXPECT_EQ(elements, (std::vector<std::string>{"1", "\"]\"", "[2]"}));
    EXPECT_FALSE(Members("[]").next());
    EXPECT_FALSE(Elements("7").next());
    EXPECT_FALSE(Elements("[]").next());
}

TEST(JsonSlices, AStringIsReadAsNlohmannReadsIt) {
    for (char const* const text :
         {R"("")", R"("a\"b\\c\/d\b\f\n\r\te")", R"("\u00e9\u20ac\ud83d\ude00\u0000x")"})
        EXPECT_EQ(string_in(text), nlohmann::json::parse(text).get<std::string>()) << text;
    EXPECT_EQ(string_in("7"), std::nullopt);
    EXPECT_EQ(string_in("null"), std::nullopt);
}

TEST(JsonSlices, TheHostIsTheFirstMember) {
    EXPECT_EQ(with_host("h7", R"({"a":1})"), R"({"host":"h7","a":1})");
    EXPECT_EQ(with_host("h7", "{}"), R"({"host":"h7"})");
}

}  // namespace
}  // namespace vfmgr::fleet
