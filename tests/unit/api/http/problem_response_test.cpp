// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/http/http.hpp"
#include "api/http/request.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {
namespace {

TEST(ProblemResponse, HasTheMembersOfRfc9457) {
    Error error{Problem::vf_in_use, "VF 3 of ens1 is attached to db1", "detach it first"};
    error.causes.push_back({"write sriov_numvfs", "EBUSY", "Device or resource busy"});
    error.violations.push_back({"/num_vfs", "must be 0 to 7"});
    auto const response = problem_response(error, "/v1/pfs/x/spec", "abc-1");
    EXPECT_EQ(response.status, 409);
    EXPECT_EQ(response.content_type, "application/problem+json");
    EXPECT_EQ(nlohmann::json::parse(response.body), nlohmann::json::parse(R"({
        "type": "/v1/problems/vf_in_use", "title": "VF is in use",
        "status": 409, "code": "vf_in_use", "detail": "VF 3 of ens1 is attached to db1",
        "remedy": "detach it first", "instance": "/v1/pfs/x/spec", "request_id": "abc-1",
        "cause": [{"call": "write sriov_numvfs", "code": "EBUSY",
                   "text": "Device or resource busy"}],
        "violations": [{"pointer": "/num_vfs", "detail": "must be 0 to 7"}]})"));
}

TEST(ProblemResponse, SurvivesOctetsThatAreNotUtf8) {
    auto const response =
        problem_response({Problem::kernel_refused, "driver \xff said no", ""}, "/", "a");
    EXPECT_NE(nlohmann::json::parse(response.body)["detail"], "");
}

TEST(ProblemResponse, SaysHowToGoOn) {
    EXPECT_EQ(problem_response({Problem::unauthorized, "no token", "log in"}, "/", "a")
                  .headers.at("WWW-Authenticate"),
              "Bearer");
    EXPECT_EQ(problem_response({Problem::unavailable, "busy", "wait"}, "/", "a")
                  .headers.at("Retry-After"),
              "5");
    Error changed{Problem::precondition_failed, "it is at revision 8, not 7", "read it again"};
    changed.revision = 8;
    EXPECT_EQ(problem_response(changed, "/", "a").headers.at("ETag"), "\"8\"");
}

TEST(ProblemResponse, OfABodyThatWasReadIs422) {
    Error const error{
        Problem::invalid_request, "/vm is required", "correct it", {}, {{"/vm", "x"}}};
    EXPECT_EQ(problem_response(error, "/", "a").status, 422);
    EXPECT_EQ(nlohmann::json::parse(problem_response(error, "/", "a").body)["status"], 422);
}

TEST(ProblemResponse, StatusOfHttpItselfIsInTheBodyToo) {
    auto const response =
        problem_response_as(413, {Problem::limit_exceeded, "too large", "less"}, "/", "a");
    EXPECT_EQ(response.status, 413);
    EXPECT_EQ(nlohmann::json::parse(response.body)["status"], 413);
    EXPECT_EQ(nlohmann::json::parse(response.body)["code"], "limit_exceeded");
}

TEST(RequestId, CharactersAndLengthAreBounded) {
    EXPECT_TRUE(valid_request_id("Az09._-"));
    EXPECT_TRUE(valid_request_id(std::string(64, 'a')));
    EXPECT_FALSE(valid_request_id(std::string(65, 'a')));
    EXPECT_FALSE(valid_request_id(""));
    EXPECT_FALSE(valid_request_id("a b"));
    EXPECT_FALSE(valid_request_id("a\"b"));
    EXPECT_EQ(random_request_id().size(), 32u);
    EXPECT_NE(random_request_id(), random_request_id());
}

TEST(Sendable, DropsWhatWouldBreakTheMessage) {
    Response response;
    response.headers = {{"ETag", "\"1\""}, {"Location", "/a\r\nX: y"}, {"a b", "c"}};
    response.body = "{}";
    auto const sent = sendable(response, "id");
    EXPECT_EQ(sent.headers.at("ETag"), "\"1\"");
    EXPECT_FALSE(sent.headers.contains("Location"));
    EXPECT_FALSE(sent.headers.contains("a b"));
    EXPECT_EQ(sent.headers.at("X-Request-Id"), "id");
    EXPECT_EQ(sent.headers.at("Content-Type"), "application/json");
    response.status = 304;
    EXPECT_EQ(sendable(response, "id").body, "");
    response.status = 7;
    EXPECT_EQ(sendable(response, "id").status, 500);
}

}  // namespace
}  // namespace vfmgr::http
