// SPDX-License-Identifier: Apache-2.0
// What the daemon says about its API: the description and each problem.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "api/types/enum_names.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Result<http::Response> get(std::string const& path, std::string const& code = {}) {
    for (auto const& route : document_routes()) {
        if (route.path != path) continue;
        std::optional<Result<http::Response>> answer;
        auto const query = std::get<Ask>(route.handle)({{}, {}, {{"code", code}}}, Snapshot{});
        if (!query) return fail(query.error());
        query->ask({}, [&](Result<http::Response> response) { answer = std::move(response); });
        return *answer;
    }
    return fail(Problem::internal, "there is no such route");
}

TEST(Documents, DescribeTheApi) {
    auto const answer = get("/v1/openapi.json").value();
    auto const document = nlohmann::json::parse(answer.body);
    EXPECT_EQ(document["openapi"], "3.1.0");
    EXPECT_TRUE(document["paths"].contains("/v1/openapi.json"));
    EXPECT_EQ(document["components"]["schemas"]["About"]["additionalProperties"], false);
    EXPECT_EQ(document["info"]["version"], "0.2.0") << "text, though it looks like a number";
    EXPECT_EQ(answer.headers.at("ETag").size(), 18U);
    EXPECT_EQ(answer.headers.at("Cache-Control"), "no-cache");
}

TEST(Documents, ExplainEachProblem) {
    std::set<std::string> causes;
    std::set<std::string> etags;
    for (auto const& [problem, name] : enum_names<Problem>) {
        auto const answer = get("/v1/problems/{code}", std::string(name)).value();
        auto const page = nlohmann::json::parse(answer.body);
        nlohmann::json const sent = Error{problem, "d", "r"};
        for (auto const* member : {"type", "code", "title", "status"})
            EXPECT_EQ(page[member], sent[member]) << name;
        EXPECT_TRUE(causes.insert(page["cause"]).second) << name;
        EXPECT_TRUE(etags.insert(answer.headers.at("ETag")).second) << name;
        for (auto const* member : {"cause", "remedy"}) {
            std::string const text = page[member];
            EXPECT_GT(text.size(), 10U) << name;
            EXPECT_THAT(text, Not(HasSubstr("\n"))) << name;
            EXPECT_THAT(text, Not(HasSubstr("Remedy:"))) << name;
            EXPECT_THAT(text, Not(HasSubstr("##"))) << name;
        }
    }
    auto const in_use = nlohmann::json::parse(get("/v1/problems/{code}", "vf_in_use")->body);
    EXPECT_THAT(std::string(in_use["cause"]), StartsWith("the VF, or one that would be removed"));
    EXPECT_THAT(std::string(in_use["remedy"]), HasSubstr("`vfctl detach VM`, or end the process"));
}

TEST(Documents, KnowNoOtherProblem) {
    for (auto const* code : {"vf-in-use", "", "none", "VF_IN_USE"})
        EXPECT_EQ(get("/v1/problems/{code}", code).error().problem, Problem::not_found) << code;
}

}  // namespace
}  // namespace vfmgr
