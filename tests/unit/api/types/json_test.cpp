// SPDX-License-Identifier: Apache-2.0
// The reader and the writer that all types share, over one type that has every kind of member.
#include "api/types/json.hpp"
#include "api/types/addresses.hpp"
#include "api/types/vf.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

struct Inner {
    std::uint8_t small = 0;
    bool operator==(Inner const&) const = default;
};
template <class F, Of<Inner> V>
void fields(F& f, V& inner) {
    f.value("small", inner.small);
}

struct Sample {
    bool flag = false;
    std::string text;
    std::int8_t narrow = 0;
    std::uint64_t wide = 0;
    double ratio = 0;
    LinkState link = LinkState::auto_;
    PciAddress pci;
    Time at{};
    std::uint16_t has_default = 7;
    std::optional<std::string> request;
    std::optional<std::int64_t> fact;
    std::vector<Inner> list;
    std::map<std::string, Inner> table;
    bool operator==(Sample const&) const = default;
};
template <class F, Of<Sample> V>
void fields(F& f, V& sample) {
    f.value("flag", sample.flag);
    f.value("text", sample.text);
    f.value("narrow", sample.narrow);
    f.value("wide", sample.wide);
    f.value("ratio", sample.ratio);
    f.value("link", sample.link);
    f.value("pci", sample.pci);
    f.value("at", sample.at);
    f.defaulted("has_default", sample.has_default);
    f.maybe("request", sample.request);
    f.nullable("fact", sample.fact);
    f.value("list", sample.list);
    f.value("table", sample.table);
}

constexpr char const* base = R"({"flag": true, "text": "t", "narrow": -128,
    "wide": 18446744073709551615, "ratio": 0.1, "link": "enable", "pci": "0000:3b:00.2",
    "at": "2026-01-31T12:00:00.000Z", "list": [{"small": 1}, {"small": 255}],
    "table": {"a/b": {"small": 2}}})";

Sample sample_of(char const* patch) {
    auto const value = from_json_text<Sample>(test::patched(base, patch));
    EXPECT_TRUE(value) << patch << ": " << value.error().detail;
    return value.value_or(Sample{});
}

constexpr auto read_sample = &test::refusal_of<Sample>;
constexpr char const* tiny = "must be a whole number from -128 to 127";
constexpr char const* huge = "must be a whole number from 0 to 18446744073709551615";
constexpr char const* octet = "must be a whole number from 0 to 255";
constexpr char const* link_states = "must be one of auto, enable, disable";
constexpr char const* a_time = "must be a time such as 2026-01-31T12:00:00.000Z";
constexpr char const* no_pci = "'3b' is not a PCI address such as 0000:3b:00.2";
constexpr char const* long_key =
    R"({"0123456789012345678901234567890123456789012345678901234567890123456789": 1})";

class JsonReaderRefuses : public testing::TestWithParam<test::Refused> {};
TEST_P(JsonReaderRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Values, JsonReaderRefuses,
    testing::Values(
        test::Refused{"missing", read_sample, base, R"({"text": null})", "/text", "is required"},
        test::Refused{"unknown", read_sample, base, R"({"txt": 1})", "/txt", "is not known here"},
        test::Refused{"empty_key", read_sample, base, R"({"": 1})", "/", "is not known here"},
        test::Refused{"escaped_key", read_sample, base, R"({"a/b~c": 1})", "/a~1b~0c",
                      "is not known here"},
        test::Refused{"overlong_key", read_sample, base, long_key,
                      "/0123456789012345678901234567890123456789012345678901234567890123…",
                      "is not known here"},
        test::Refused{"upper_case_key", read_sample, base, R"({"REQUEST": "w"})", "/REQUEST",
                      "is not known here"},
        test::Refused{"text_number", read_sample, base, R"({"text": 1})", "/text",
                      "must be a string"},
        test::Refused{"bool_number", read_sample, base, R"({"flag": 1})", "/flag",
                      "must be true or false"},
        test::Refused{"bool_text", read_sample, base, R"({"flag": "true"})", "/flag",
                      "must be true or false"},
        test::Refused{"narrow_above", read_sample, base, R"({"narrow": 128})", "/narrow", tiny},
        test::Refused{"narrow_below", read_sample, base, R"({"narrow": -129})", "/narrow", tiny},
        test::Refused{"narrow_wraps", read_sample, base, R"({"narrow": 256})", "/narrow", tiny},
        test::Refused{"narrow_text", read_sample, base, R"({"narrow": "1"})", "/narrow", tiny},
        test::Refused{"narrow_bool", read_sample, base, R"({"narrow": true})", "/narrow", tiny},
        test::Refused{"narrow_fraction", read_sample, base, R"({"narrow": 1.0})", "/narrow", tiny},
        test::Refused{"narrow_exponent", read_sample, base, R"({"narrow": 1e1})", "/narrow", tiny},
        test::Refused{"wide_negative", read_sample, base, R"({"wide": -1})", "/wide", huge},
        test::Refused{"wide_2_to_64", read_sample, base, R"({"wide": 18446744073709551616})",
                      "/wide", huge},
        test::Refused{"ratio_text", read_sample, base, R"({"ratio": "0.1"})", "/ratio",
                      "must be a number"},
        test::Refused{"enum_case", read_sample, base, R"({"link": "Auto"})", "/link", link_states},
        test::Refused{"enum_number", read_sample, base, R"({"link": 0})", "/link", link_states},
        test::Refused{"textual_number", read_sample, base, R"({"pci": 3})", "/pci",
                      "must be a string"},
        test::Refused{"textual_nonsense", read_sample, base, R"({"pci": "3b"})", "/pci", no_pci},
        test::Refused{"time_number", read_sample, base, R"({"at": 1769860800})", "/at", a_time},
        test::Refused{"time_date", read_sample, base, R"({"at": "2026-01-31"})", "/at", a_time},
        test::Refused{"default_type", read_sample, base, R"({"has_default": 65536})",
                      "/has_default", "must be a whole number from 0 to 65535"},
        test::Refused{"request_type", read_sample, base, R"({"request": 1})", "/request",
                      "must be a string"},
        test::Refused{"list_object", read_sample, base, R"({"list": {"0": {"small": 1}}})", "/list",
                      "must be an array"},
        test::Refused{"list_item", read_sample, base, R"({"list": [{"small": 1}, 5]})", "/list/1",
                      "must be an object"},
        test::Refused{"list_member", read_sample, base,
                      R"({"list": [{"small": 1}, {"small": 256}]})", "/list/1/small", octet},
        test::Refused{"list_missing", read_sample, base, R"({"list": [{}]})", "/list/0/small",
                      "is required"},
        test::Refused{"list_unknown", read_sample, base, R"({"list": [{"small": 1, "big": 2}]})",
                      "/list/0/big", "is not known here"},
        test::Refused{"table_array", read_sample, base, R"({"table": []})", "/table",
                      "must be an object"},
        test::Refused{"table_member", read_sample, base, R"({"table": {"a/b": {"small": -1}}})",
                      "/table/a~1b/small", octet},
        test::Refused{"null_document", read_sample, "", "null", "", "must be an object"},
        test::Refused{"array_document", read_sample, "", "[]", "", "must be an object"},
        test::Refused{"text_document", read_sample, "", R"("flag")", "", "must be an object"}),
    test::name_of);

// merge_patch can't set null: null removes.
TEST(JsonReader, NullIsNoValueOfARequiredMember) {
    auto document = nlohmann::json::parse(base);
    for (auto const* key : {"flag", "text", "narrow", "ratio", "link", "pci", "at", "list"}) {
        auto with_null = document;
        with_null[key] = nullptr;
        auto const value = from_json_document<Sample>(with_null);
        ASSERT_FALSE(value) << key;
        EXPECT_EQ(value.error().violations[0].pointer, std::string("/") + key);
    }
}

TEST(JsonReader, NullIsAFactsValueAndNoRequest) {
    auto document = nlohmann::json::parse(base);
    auto const absent = from_json_document<Sample>(document).value();
    EXPECT_EQ(absent.has_default, 7);
    EXPECT_EQ(absent.request, std::nullopt);
    EXPECT_EQ(absent.fact, std::nullopt);
    document["fact"] = nullptr;
    EXPECT_EQ(from_json_document<Sample>(document), absent);
    for (auto const* key : {"has_default", "request"}) {
        auto with_null = document;
        with_null[key] = nullptr;
        EXPECT_EQ(
            test::refusal_of<Sample>(with_null.dump()).violations,
            (std::vector<Violation>{{std::string("/") + key, "must not be null; leave it out"}}));
    }
}

// Texts of é's, each of two bytes.
TEST(JsonReader, TextsHaveCharactersAndSteerNothing) {
    auto const violations_of = [](std::string const& text) {
        std::vector<Violation> violations;
        nlohmann::json const document = nlohmann::json::object();
        JsonReader reader(document, "", violations);
        check_text(reader, "name", text, 3);
        return violations;
    };
    using Violations = std::vector<Violation>;
    EXPECT_EQ(violations_of("ééé"), Violations{});
    EXPECT_EQ(violations_of("éééé"), (Violations{{"/name", "must be at most 3 characters"}}));
    for (auto const* text : {"\n", "\x7f", "\xc2\x9b", "\u202e", "\u2028"})
        EXPECT_EQ(violations_of(text),
                  (Violations{{"/name", "must not contain control characters"}}))
            << text;
}

TEST(JsonReader, TakesTheWholeRangeOfEachMember) {
    EXPECT_EQ(sample_of("{}").narrow, -128);
    EXPECT_EQ(sample_of(R"({"narrow": 127})").narrow, 127);
    EXPECT_EQ(sample_of(R"({"narrow": -0})").narrow, 0);
    EXPECT_EQ(sample_of("{}").wide, UINT64_MAX);
    EXPECT_EQ(sample_of(R"({"fact": -9223372036854775808})").fact, INT64_MIN);
    EXPECT_EQ(sample_of(R"({"fact": 9223372036854775807})").fact, INT64_MAX);
    EXPECT_EQ(sample_of(R"({"ratio": 3})").ratio, 3.0);
    EXPECT_EQ(sample_of(R"({"text": "é\u0000\n"})").text, std::string("é\0\n", 4));
    EXPECT_EQ(sample_of(R"({"request": ""})").request, "") << "empty is not absent";
    EXPECT_EQ(sample_of(R"({"fact": 0})").fact, 0) << "zero is not absent";
}

TEST(JsonReader, TellsEveryViolationAtOnce) {
    auto const value = from_json_text<Sample>(R"({"flag": 1, "list": [{"small": -1}], "no": 0})");
    ASSERT_FALSE(value);
    std::vector<std::string> pointers;
    for (auto const& violation : value.error().violations) pointers.push_back(violation.pointer);
    EXPECT_EQ(pointers,
              (std::vector<std::string>{"/flag", "/text", "/narrow", "/wide", "/ratio", "/link",
                                        "/pci", "/at", "/list/0/small", "/table", "/no"}));
    EXPECT_EQ(value.error().detail, "/flag must be true or false (and 10 more)");
}

TEST(JsonReader, StopsCountingViolations) {
    auto document = nlohmann::json::parse(base);
    for (int i = 0; i < 1000; ++i) document["list"].push_back(i);
    EXPECT_EQ(from_json_document<Sample>(document).error().violations.size(), 64U);
}

TEST(JsonWriter, WhatIsReadIsWritten) {
    test::expect_survives<Sample>(base);
    test::expect_survives<Sample>(test::patched(
        base,
        R"({"has_default": 0, "request": "\u0000\"", "fact": -1, "list": [], "ratio": 1e300})"));
    auto const written = nlohmann::json(sample_of("{}"));
    EXPECT_FALSE(written.contains("request")) << "a request that nobody has";
    EXPECT_TRUE(written.at("fact").is_null()) << "a fact that nobody knows";
    EXPECT_EQ(written.at("has_default"), 7);
    EXPECT_EQ(nlohmann::json(Sample{}).at("list"), nlohmann::json::array());
    EXPECT_EQ(nlohmann::json(Sample{}).at("table"), nlohmann::json::object());
}

}  // namespace
}  // namespace vfmgr
