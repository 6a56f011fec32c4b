// SPDX-License-Identifier: Apache-2.0
#include "service/cli/yaml.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace vfmgr {
namespace {

TEST(Yaml, IsTheDocumentInItsOrder) {
    EXPECT_EQ(as_yaml(R"({"name": "db 1", "free": 2, "rate": -1.5, "up": true, "vf": null,
                          "list": [{"b": 1, "a": []}, "x"], "none": {}})")
                  .value(),
              "name: db 1\n"
              "free: 2\n"
              "rate: -1.5\n"
              "up: true\n"
              "vf: null\n"
              "list:\n"
              "  - b: 1\n"
              "    a: []\n"
              "  - x\n"
              "none: {}\n");
    EXPECT_EQ(as_yaml("[]").value(), "[]\n");
}

TEST(Yaml, QuotesWhatReadersTakeForSomethingElse) {
    for (auto const* const text :
         {"",           "12",   "-1",    "1e3",  "0x10",        "0o7",  "1_000", "12:30:45",
          "2026-01-31", "true", "No",    "ON",   "y",           "null", "~",     ".inf",
          ".nan",       "<<",   "=",     "a: b", "a #b",        "- a",  "?",     "a ",
          " a",         "*a",   "&a",    "!a",   "@a",          "%a",   "`a",    "[a",
          "{a}",        "'a'",  "\"a\"", "a,b",  "0000:01:00.0"})
        EXPECT_EQ(as_yaml(nlohmann::json(text).dump()).value().front(), '"') << text;
    for (auto const* const text : {"db1", "vm 1", "on-line", "nullable", "vfio-pci", "a.b/c_d"})
        EXPECT_EQ(as_yaml(nlohmann::json(text).dump()).value(), text + std::string("\n"));
    EXPECT_EQ(as_yaml(R"({"on": 1, "12": 2})").value(), "\"on\": 1\n\"12\": 2\n")
        << "names of members, too";
}

TEST(Yaml, NumbersHaveAPoint) {
    EXPECT_EQ(as_yaml("[1e22, 1.5e-9, 18446744073709551615, 941.0]").value(),
              "- 1.0e+22\n- 1.5e-09\n- 18446744073709551615\n- 941.0\n");
}

TEST(Yaml, ComesFromJsonOnly) {
    auto const refused = as_yaml("nonsense");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "the server's answer is not JSON");
}

std::string json_in(std::string_view yaml) {
    auto const json = json_of_yaml(yaml);
    return json ? *json : "refused: " + json.error().detail;
}

TEST(Yaml, IsReadAsItWasWritten) {
    for (auto const* const document :
         {R"({"pfs":{"0000:01:00.0":{"mode":"manage","num_vfs":8}},"networks":{"on":{"vlan":12}}})",
          R"([1,-2,1.5,1e300,true,false,null,"","12","null","~","a: b","#","é","\n","\u0001"])",
          R"({})", R"([])", R"("a")", R"({"a":{},"b":[],"c":[[],{}],"":1,"12":"12"})"})
        EXPECT_EQ(nlohmann::ordered_json::parse(json_in(as_yaml(document).value())),
                  nlohmann::ordered_json::parse(document));
}

TEST(Yaml, OfPeopleIsRead) {
    EXPECT_EQ(
        json_in("# host\npfs:\n  0000:01:00.0: {num_vfs: 8, mode: on}\nmac: 02:00:00:00:00:01\n"
                "none:\nquoted: '12'\nend: ~\nlist:\n- 0x10\n- .5\n"),
        R"({"pfs":{"0000:01:00.0":{"num_vfs":8,"mode":"on"}},"mac":"02:00:00:00:00:01",)"
        R"("none":null,"quoted":"12","end":null,"list":["0x10",".5"]})");
    EXPECT_EQ(json_in(R"({"a": [1, "x"]})"), R"({"a":[1,"x"]})") << "JSON is YAML";
    EXPECT_EQ(json_in("---\na: 1\n...\n"), R"({"a":1})");
}

TEST(Yaml, WhatIsNoDocumentIsRefusedByLine) {
    EXPECT_EQ(json_in("a: 1\nb: 2\na: 3\n"), "refused: line 3, column 1: 'a' is there twice");
    EXPECT_EQ(json_in("a: &x 1\n"), "refused: line 1, column 4: anchors are not accepted");
    EXPECT_EQ(json_in("a: *x\n"),
              "refused: line 1, column 4: the referenced anchor is not defined");
    EXPECT_EQ(json_in("a: !!str 1\n"), "refused: line 1, column 4: tags are not accepted");
    EXPECT_EQ(json_in("a: 1\n---\nb: 1\n"),
              "refused: line 2, column 1: there is a second document");
    EXPECT_EQ(json_in("[1]: 2\n"), "refused: line 1, column 1: names of members are text");
    EXPECT_EQ(json_in("a: \xff\n"), "refused: line 1, column 4: it is not UTF-8");
    EXPECT_EQ(json_in(""), "refused: line 1, column 1: there is no document");
    EXPECT_THAT(json_in("a: [1\n"), testing::StartsWith("refused: line 2"));
    std::string deep;
    for (int i = 0; i < 100; ++i) deep += "- ";
    EXPECT_THAT(json_in(deep), testing::HasSubstr("too deeply"));
}

}  // namespace
}  // namespace vfmgr
