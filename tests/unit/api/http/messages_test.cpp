// SPDX-License-Identifier: Apache-2.0
// Paths with ids, bearer tokens, and how a response with another status is parsed.
#include <gtest/gtest.h>

#include "api/http/http.hpp"
#include "api/http/path_route.hpp"

namespace vfmgr::http {
namespace {

using Ids = std::vector<std::string>;

TEST(PathRoutes, IdsStandInTheirPlaces) {
    EXPECT_EQ(ids_in_path("/a/v1", "/a/v1"), Ids{});
    EXPECT_EQ(ids_in_path("/a/{}", "/a/5d-0A"), Ids{"5d-0A"});
    EXPECT_EQ(ids_in_path("/a/{}/b/{}", "/a/1/b/2"), (Ids{"1", "2"}));
    EXPECT_EQ(ids_in_path("/a/{}", "/a/" + std::string(64, 'x')), Ids{std::string(64, 'x')});
}

TEST(PathRoutes, OtherPathsAndIdsAreNone) {
    for (auto const& path :
         {std::string(), std::string("/"), std::string("/a"), std::string("/a/"),
          std::string("/a/1/"), std::string("//1"), std::string("/a/1/2"), std::string("/b/1"),
          std::string("/a/{}"), std::string("/a/x.y"), "/a/" + std::string(65, 'x')})
        EXPECT_EQ(ids_in_path("/a/{}", path), std::nullopt) << path;
}

TEST(PathRoutes, TheRightPathWithAnotherMethodSaysWhich) {
    enum class To { read, write };
    constexpr std::array<PathRoute<To>, 2> routes{
        {{To::read, "GET", "/a"}, {To::write, "PUT", "/a/{}"}}};
    auto const find = [&](char const* method, char const* path) {
        return find_route<To>(routes, method, path, {Problem::not_found, "no such path", ""});
    };
    EXPECT_EQ(find("PUT", "/a/1")->to, To::write);
    EXPECT_EQ(find("GET", "/a/1").error().detail, "this path takes PUT only");
    EXPECT_EQ(find("GET", "/b").error().detail, "no such path");
}

TEST(BearerTokens, AreReadInAnyCaseOfTheScheme) {
    EXPECT_EQ(bearer_token("Bearer vfr_1"), "vfr_1");
    EXPECT_EQ(bearer_token("bEaReR a b"), "a b");
    for (auto const& header : {std::string(), std::string("Bearer"), std::string("Basic YTpi"),
                               std::string("vfr_1"), "Bearer " + std::string(250, 'x')})
        EXPECT_EQ(bearer_token(header), "") << header;
}

TEST(Answers, OfOtherStatusAreTheirProblem) {
    EXPECT_TRUE(success_of({.status = 204}));
    auto const refused =
        success_of(problem_response({Problem::conflict, "it is taken", "take another"}, Request{}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_EQ(refused.error().detail, "it is taken");
    EXPECT_FALSE(success_of({.status = 502, .body = "<html>"}));
}

}  // namespace
}  // namespace vfmgr::http
