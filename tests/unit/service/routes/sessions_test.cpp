// SPDX-License-Identifier: Apache-2.0
// The life of a session, through the routes.
#include "tests/unit/service/routes/gated.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;

struct SessionRoutesTest : test::Gated {
    void SetUp() override {
        Gated::SetUp();
        config.changes = {.burst = 100, .per_second = 1};
        open();
    }
    // Returns the session's token, less the "vfm_" that ask() adds.
    std::string begun_by(char const* who) {
        auto const answer = post(who, "/v1/sessions", "");
        EXPECT_EQ(answer.status, 201) << answer.body;
        auto const begun = nlohmann::json::parse(answer.body);
        EXPECT_EQ(begun["who"], std::string("token:") + who);
        EXPECT_EQ(begun["role"], who);
        return begun["token"].get<std::string>().substr(4);
    }
};

TEST_F(SessionRoutesTest, BeginsEndsAndIsAuditedAsWhoBeganIt) {
    auto const session = begun_by("viewer");
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 200);
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/tokens").status, 403);
    EXPECT_EQ(post(session.c_str(), "/v1/sessions", "").status, 403);
    EXPECT_EQ(ask(session.c_str(), "DELETE", "/v1/sessions/current", {{"dry_run", "true"}}).status,
              200);
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 200);
    EXPECT_EQ(ask(session.c_str(), "DELETE", "/v1/sessions/current").status, 204);
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 401);
    EXPECT_EQ(ask("viewer", "DELETE", "/v1/sessions/current").status, 404);
    EXPECT_EQ(ask("viewer", "GET", "/v1/pfs").status, 200) << "its token stays";
    std::vector<std::string> said;
    for (auto const& entry : audit()) said.push_back(entry.who + " " + entry.outcome);
    EXPECT_THAT(
        said, testing::ElementsAre("token:viewer 404", "address:192.0.2.9 401", "token:viewer 204",
                                   "token:viewer 200", "token:viewer 403", "token:viewer 403",
                                   "token:viewer 201"));
}

TEST_F(SessionRoutesTest, EndsWithItsToken) {
    save_token("admin");
    auto const session = begun_by("operator");
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 200);
    ASSERT_TRUE(presence->known);
    EXPECT_TRUE(presence->known->holds());
    EXPECT_EQ(ask("admin", "DELETE", "/v1/tokens/operator").status, 204);
    EXPECT_THAT(ask(session.c_str(), "GET", "/v1/pfs").body, HasSubstr("token:operator ended"));
}

TEST_F(SessionRoutesTest, EveryTokenMayBeginOneWhateverItsScopes) {
    save_scoped("viewer", {"vms"});
    auto const begun = post("scoped", "/v1/sessions", "");
    ASSERT_EQ(begun.status, 201) << begun.body;
    EXPECT_EQ(nlohmann::json::parse(begun.body)["scopes"], nlohmann::json({"vms"}));
    auto const session = nlohmann::json::parse(begun.body)["token"].get<std::string>().substr(4);
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 403);
}

TEST_F(SessionRoutesTest, ACertificateBeginsOne) {
    config.roles.clients = {{"a.example", Role::operator_}};
    open();
    EXPECT_EQ(post(test::stranger, "/v1/sessions", "").status, 401);
    peer.certificate = {{"a.example"}, Time::max()};
    auto const begun = post(test::stranger, "/v1/sessions", "");
    ASSERT_EQ(begun.status, 201) << begun.body;
    EXPECT_EQ(nlohmann::json::parse(begun.body)["who"], "cert:a.example");
    auto const session = nlohmann::json::parse(begun.body)["token"].get<std::string>().substr(4);
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 200);
    peer.certificate.reset();
    EXPECT_EQ(ask(session.c_str(), "GET", "/v1/pfs").status, 401);
}

}  // namespace
}  // namespace vfmgr
