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

}  // namespace
}  // namespace vfmgr
