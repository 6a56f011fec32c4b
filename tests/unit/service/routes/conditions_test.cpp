// SPDX-License-Identifier: Apache-2.0
// If-Match and If-None-Match as RFC 9110 has them.
#include "service/routes/conditions.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;
using Tags = std::vector<EntityTag>;
using Revisions = std::vector<std::uint64_t>;

Call call_with(std::string header, std::string value, std::string method = "GET") {
    Call call;
    call.request.method = std::move(method);
    call.request.headers[std::move(header)] = std::move(value);
    return call;
}

TEST(EntityTags, AreAList) {
    EXPECT_EQ(parse_entity_tags("\"7\"").value(), (Tags{{"\"7\""}}));
    EXPECT_EQ(parse_entity_tags("W/\"7\"").value(), (Tags{{"\"7\"", true}}));
    EXPECT_EQ(parse_entity_tags(" \"7\" ,\tW/\"a,b\",, \"\" ,").value(),
              (Tags{{"\"7\""}, {"\"a,b\"", true}, {"\"\""}}));
    EXPECT_EQ(parse_entity_tags("7").value(), (Tags{{"\"7\""}})) << "as people write it";
    EXPECT_EQ(parse_entity_tags(" * ").value(), std::nullopt);
}

TEST(EntityTags, AreNotGuessed) {
    for (auto const* value : {"", ",", " ", "\"7", "7\"", "seven", "\"7\" \"8\"", "\"7\"8",
                              "w/\"7\"", "W/7", "*, \"7\"", "W/", "\"7\", x", "\"a\"b\""}) {
        auto const tags = parse_entity_tags(value);
        ASSERT_FALSE(tags) << value;
        EXPECT_EQ(tags.error().problem, Problem::invalid_request);
        EXPECT_FALSE(tags.error().remedy.empty());
    }
}

Revisions revisions(std::string const& value) {
    auto const condition = if_match(call_with("if-match", value, "PUT"));
    EXPECT_TRUE(condition) << value;
    return condition ? condition->any_of.value_or(Revisions{999}) : Revisions{};
}

// RFC 9110, 13.1.1: a weak tag matches nothing, not even itself.
TEST(IfMatch, NamesRevisions) {
    EXPECT_EQ(revisions("\"7\""), Revisions{7});
    EXPECT_EQ(revisions("\"7\", \"8\", W/\"9\", \"abc\""), (Revisions{7, 8}));
    EXPECT_EQ(revisions("W/\"7\""), Revisions{});
    EXPECT_EQ(revisions("\"18446744073709551616\""), Revisions{});
    EXPECT_EQ(revisions("*"), Revisions{999}) << "any";
    EXPECT_FALSE(if_match(call_with("if-match", "\"7", "PUT")));
    EXPECT_FALSE(if_match(call_with("accept", "x"))->any_of);
}

http::Response known(std::string const& value, int status = 200) {
    http::Response response{.status = status, .headers = {{"ETag", "\"7\""}}, .body = "{}"};
    return unless_known(call_with("if-none-match", value), response).value();
}

TEST(IfNoneMatch, IsAnsweredWithoutABody) {
    for (auto const* value : {"\"7\"", "W/\"7\"", "\"6\", \"7\"", "*", "7"}) {
        auto const answer = known(value);
        EXPECT_EQ(answer.status, 304) << value;
        EXPECT_EQ(answer.body, "") << value;
        EXPECT_EQ(answer.headers.at("ETag"), "\"7\"") << value;
    }
    for (auto const* value : {"\"8\"", "\"77\"", "\"\""})
        EXPECT_EQ(known(value).status, 200) << value;
    EXPECT_EQ(known("\"7\"", 404).status, 404) << "a problem is none of its representations";
    EXPECT_FALSE(unless_known(call_with("if-none-match", "x"), {.headers = {{"ETag", "\"7\""}}}));
    EXPECT_EQ(unless_known(call_with("if-none-match", "*"), {})->status, 200) << "it has no ETag";
}

TEST(IfNoneMatch, IsNotIgnoredWithAChange) {
    auto const refused = refuse_if_none_match(call_with("if-none-match", "*", "PUT"));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().remedy, HasSubstr("If-Match"));
    EXPECT_TRUE(refuse_if_none_match(call_with("if-none-match", "*")));
    EXPECT_TRUE(refuse_if_none_match(call_with("if-match", "*", "PUT")));
}

}  // namespace
}  // namespace vfmgr
