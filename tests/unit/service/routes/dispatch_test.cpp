// SPDX-License-Identifier: Apache-2.0
// What a dispatcher does with endpoints that other servers answer, and with changes of strangers.
#include "service/routes/dispatch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Endpoint> const endpoints{
    {"GET", "/v1/hosts", Role::viewer},
    {"POST", "/v1/hosts", anyone},
    {"GET", "/v1/hosts/{host}", Role::viewer},
    {"POST", "/v1/hosts/{host}/fenced", Role::admin},
    {"", "/v1/hosts/{host}/{rest...}", Role::viewer, {}, for_tenants_too, true},
};

http::Request request_for(std::string method, std::string path) {
    return http::make_request(std::move(method), std::move(path));
}

TEST(Endpoints, TheRestOfAPathIsOneSegmentOrMore) {
    auto const found = find_endpoint(endpoints, request_for("PATCH", "/v1/hosts/h1/pfs/x/vfs"));
    ASSERT_EQ(found.endpoint, &endpoints[4]);
    EXPECT_EQ(found.ids.at("host"), "h1");
    EXPECT_EQ(found.ids.at("rest"), "pfs/x/vfs");
    EXPECT_EQ(find_endpoint(endpoints, request_for("GET", "/v1/hosts/h1")).endpoint, &endpoints[2]);
    auto const none = find_endpoint(endpoints, request_for("GET", "/v1/hosts/h1/"));
    EXPECT_EQ(none.endpoint, nullptr) << "a segment has a character at least";
}

TEST(Endpoints, APathOfItsOwnIsNotPassedOnWhateverTheMethod) {
    EXPECT_EQ(find_endpoint(endpoints, request_for("POST", "/v1/hosts/h1/fenced")).endpoint,
              &endpoints[3]);
    auto const found = find_endpoint(endpoints, request_for("GET", "/v1/hosts/h1/fenced"));
    EXPECT_EQ(found.endpoint, nullptr);
    EXPECT_THAT(found.allowed, ElementsAre("POST"));
}

TEST(Endpoints, ScopesNameTheNounThatIsAskedFor) {
    EXPECT_EQ(noun_asked_for(endpoints[4], {{"host", "h1"}, {"rest", "pfs/x"}}), "pfs");
    EXPECT_EQ(noun_asked_for(endpoints[3], {{"host", "h1"}}), "hosts");
    EXPECT_THAT(nouns_of(endpoints), ElementsAre("hosts"));
}

struct Dispatched : testing::Test {
    std::vector<std::string> answered;  // by the program: method and place
    std::vector<std::string> audited;
    std::optional<Principal> who = Principal{.name = "token:t", .role = Role::operator_};
    std::chrono::milliseconds hold{0};  // of strangers
    http::Handler handler =
        dispatcher(endpoints, gate(),
                   [this](std::size_t place, Call const& call, http::Respond const& respond) {
                       answered.push_back(fmt::format("{} {}", place, call.who.name));
                       respond(no_content());
                   });

    Gate gate() {
        Gate gate;
        gate.program = {.unit = "vfmgr-fleetd", .settings = "/etc/vfmgr/fleetd.toml"};
        gate.authenticate = [this](http::Request const&) -> Result<Principal> {
            if (who) return *who;
            return fail(Problem::unauthorized, "no token", "");
        };
        gate.still_holds = [](Principal const&, http::Peer const&) { return true; };
        gate.take_change = [this](Principal const& one) {
            return one.name == "token:greedy" ? std::chrono::milliseconds(1) : hold * 0;
        };
        gate.take_failure = [](std::string const&) { return std::chrono::milliseconds(0); };
        gate.take_visit = [this](std::string const&) { return hold; };
        gate.answered = [this](Call const& call, http::Response const& response) {
            audited.push_back(
                fmt::format("{} {} {}", call.who.name, call.request.method, response.status));
        };
        gate.unknown = [this](Call const& call, http::Response const& response) {
            audited.push_back(fmt::format("unknown {} {}", call.who.name, response.status));
        };
        return gate;
    }
    http::Response ask(std::string method, std::string path,
                       std::map<std::string, std::string> headers = {}) {
        auto request = request_for(std::move(method), std::move(path));
        request.peer = http::TcpPeer{"192.0.2.9"};
        request.headers = std::move(headers);
        http::Response got;
        got.status = 0;
        handler(std::move(request), [&](http::Response response) { got = std::move(response); });
        return got;
    }
};

TEST_F(Dispatched, TheOtherServerJudgesQueryMediaAndConditions) {
    auto request = request_for("PUT", "/v1/hosts/h1/pfs/x/spec");
    request.query = {{"dry_run", "true"}};
    request.headers = {{"if-none-match", "*"}, {"content-type", "text/plain"}};
    request.body = "x";
    int status = 0;
    handler(std::move(request), [&](http::Response response) { status = response.status; });
    EXPECT_EQ(status, 204);
    EXPECT_THAT(answered, ElementsAre("4 token:t"));
    EXPECT_THAT(audited, ElementsAre("token:t PUT 204"));
    auto own = request_for("GET", "/v1/hosts");
    own.query = {{"dry_run", "true"}};
    handler(std::move(own), [&](http::Response response) { status = response.status; });
    EXPECT_EQ(status, 400) << "of one's own, they are judged here";
}

TEST_F(Dispatched, AScopeOfTheNounThatIsAskedForIsEnough) {
    who->scopes = {"pfs"};
    EXPECT_EQ(ask("GET", "/v1/hosts/h1/pfs").status, 204);
    EXPECT_EQ(ask("GET", "/v1/hosts/h1/vms").status, 403);
    EXPECT_EQ(ask("GET", "/v1/hosts").status, 403);
    EXPECT_EQ(ask("GET", "/v1/hosts/h1/openapi.json").status, 204) << "every token may";
}

TEST_F(Dispatched, ATenantMayAskAnotherServerWhichJudgesIt) {
    who->tenant = std::make_shared<DesiredTenant const>();
    EXPECT_EQ(ask("GET", "/v1/hosts/h1/vms").status, 204);
    EXPECT_EQ(ask("GET", "/v1/hosts").status, 403);
}

TEST_F(Dispatched, AStrangersChangeIsAuditedAsAnyOther) {
    who.reset();
    EXPECT_EQ(ask("POST", "/v1/hosts").status, 204);
    EXPECT_THAT(audited, ElementsAre("address:192.0.2.9 POST 204"));
    hold = std::chrono::milliseconds(100);
    auto const often = ask("POST", "/v1/hosts");
    EXPECT_EQ(often.status, 429);
    EXPECT_THAT(audited,
                ElementsAre("address:192.0.2.9 POST 204", "unknown address:192.0.2.9 429"));
    EXPECT_EQ(ask("GET", "/v1/hosts").status, 401);
    EXPECT_EQ(answered.size(), 1U);
}

TEST_F(Dispatched, ARefusalNamesTheProgramsOwnSettings) {
    who->name = "token:greedy";
    auto const answer = ask("DELETE", "/v1/hosts/h1/pfs");
    EXPECT_EQ(answer.status, 429);
    EXPECT_THAT(answer.body,
                HasSubstr("limits.changes_per_second in /etc/vfmgr/fleetd.toml sets the rate"));
}

}  // namespace
}  // namespace vfmgr
