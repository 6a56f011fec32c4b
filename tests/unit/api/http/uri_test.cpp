// SPDX-License-Identifier: Apache-2.0
#include "api/http/uri.hpp"

#include <gtest/gtest.h>

namespace vfmgr::http {
namespace {

RequestTarget parsed(std::string_view text) {
    auto target = parse_target(text);
    EXPECT_TRUE(target) << text << ": " << target.error().detail;
    return target.value_or(RequestTarget{});
}

std::string refusal(std::string_view text) {
    auto const target = parse_target(text);
    if (target) return "accepted as " + target->path;
    EXPECT_EQ(target.error().problem, Problem::invalid_request);
    EXPECT_FALSE(target.error().remedy.empty());
    return target.error().detail;
}

TEST(Uri, SplitsPathAndQuery) {
    EXPECT_EQ(parsed("/v1/pfs"), (RequestTarget{"/v1/pfs", {}}));
    EXPECT_EQ(parsed("/v1/operations/a?wait=30&x=y"),
              (RequestTarget{"/v1/operations/a", {{"wait", "30"}, {"x", "y"}}}));
    EXPECT_EQ(parsed("/?"), (RequestTarget{"/", {}}));
}

TEST(Uri, DecodesPercentAndPlus) {
    EXPECT_EQ(parsed("/v1/pfs/0000%3A01%3a00.0").path, "/v1/pfs/0000:01:00.0");
    EXPECT_EQ(parsed("/a+b").path, "/a+b");
    EXPECT_EQ(parsed("/a?name=b+c%2Bd%26e").query.at("name"), "b c+d&e");
    EXPECT_EQ(parsed("/a?name=1=2").query.at("name"), "1=2");
    EXPECT_EQ(parsed("/a?p=b%2Fc").query.at("p"), "b/c");
    EXPECT_EQ(parsed("/%C3%BC").path, "/ü");
}

TEST(Uri, TakesTheAbsoluteForm) {
    EXPECT_EQ(parsed("http://localhost/v1?a=b"), (RequestTarget{"/v1", {{"a", "b"}}}));
    EXPECT_EQ(parsed("https://host:8470").path, "/");
    EXPECT_EQ(refusal("http:///v1"), "the request target names no host");
}

TEST(Uri, RefusesWhatIsAmbiguous) {
    EXPECT_EQ(refusal(""), "the request target does not begin with '/'");
    EXPECT_EQ(refusal("*"), "the request target does not begin with '/'");
    EXPECT_EQ(refusal("/a%2Fb"), "the request target has an encoded '/' in its path");
    EXPECT_EQ(refusal("/a?b=1&b=2"), "the parameter 'b' is given twice");
    EXPECT_EQ(refusal("/a?=1"), "the request target has a parameter without a name");
    EXPECT_EQ(refusal("/a#b"), "the request target has a fragment ('#')");
}

TEST(Uri, RefusesBadEncodings) {
    auto const hex = "the request target has a '%' without two hexadecimal digits";
    EXPECT_EQ(refusal("/%"), hex);
    EXPECT_EQ(refusal("/%4"), hex);
    EXPECT_EQ(refusal("/%zz"), hex);
    EXPECT_EQ(refusal("/a?b=%4g"), hex);
    EXPECT_EQ(refusal("/a%00"), "the request target has a control character");
    EXPECT_EQ(refusal("/a%0d%0aX: y"), "the request target has a control character");
    for (auto const* target : {"/a%C2%9B2J", "/a%E2%80%AEb", "/a?vm=%E2%81%A6"})
        EXPECT_EQ(refusal(target), "the request target has a control or bidirectional character");
    for (auto const* text : {"/%ff", "/%C3", "/%C0%AF", "/%ED%A0%80", "/%F5%80%80%80",
                             "/%F4%90%80%80", "/%E0%80%80", "/%80"})
        EXPECT_EQ(refusal(text), "the request target is not UTF-8") << text;
}

TEST(Uri, FormatsWhatItParses) {
    for (auto const& target :
         {RequestTarget{"/v1/pfs/0000:01:00.0/vfs", {}},
          RequestTarget{"/a b/%/ü/+&?#", {{"q", "1 2&3=4+5#/%"}, {"ü", ""}}}}) {
        auto const text = format_target(target);
        EXPECT_EQ(parsed(text), target) << text;
        EXPECT_EQ(text.find(' '), std::string::npos);
    }
    EXPECT_EQ(format_target({"/v1/pfs/0000:01:00.0", {{"wait", "30"}}}),
              "/v1/pfs/0000:01:00.0?wait=30");
    EXPECT_EQ(format_target({"", {}}), "/");
}

TEST(Uri, HeaderValuesHoldNoControlCharacters) {
    EXPECT_TRUE(valid_header_value("a b\tc"));
    EXPECT_FALSE(valid_header_value("a\r\nSet-Cookie: b"));
    EXPECT_FALSE(valid_header_value(std::string_view("a\0b", 3)));
    EXPECT_TRUE(valid_header_name("X-Request-Id"));
    EXPECT_FALSE(valid_header_name("a b"));
    EXPECT_FALSE(valid_header_name(""));
}

}  // namespace
}  // namespace vfmgr::http
