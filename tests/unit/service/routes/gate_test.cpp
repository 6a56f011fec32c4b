// SPDX-License-Identifier: Apache-2.0
// Request limits per client and what is left of them: router and gate, on an engine with fakes.
#include "service/routes/host_gate.hpp"
#include "service/routes/turned_away.hpp"
#include "tests/unit/service/routes/gated.hpp"

namespace vfmgr {
namespace {

using test::stranger;
using testing::HasSubstr;

struct GateTest : test::Gated {};

TEST_F(GateTest, WhoAsksTooOftenWaitsAndIsCounted) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("viewer", "POST", "/v1/tokens").status, 403);
    for (int i = 1; i <= 5; ++i) {
        auto const refused = ask("viewer", "POST", "/v1/tokens");
        EXPECT_EQ(refused.status, 429);
        EXPECT_EQ(refused.headers.at("Retry-After"), "1");
        EXPECT_GT(refused.hold, std::chrono::milliseconds(200 * i)) << "one after another";
        EXPECT_THAT(refused.body, HasSubstr("token:viewer sends too many requests"));
    }
    EXPECT_EQ(ask("viewer", "GET", "/livez").status, 200) << "reading is no change";
    EXPECT_EQ(ask("viewer", "GET", "/v1/tokens").status, 429) << "and being denied is none";
    EXPECT_EQ(ask("operator", "POST", "/v1/tokens").status, 403) << "its share is its own";
    auto const entries = audit();
    std::uint64_t counted = 0;
    std::size_t alone = 0;
    for (auto const& entry : entries) {
        EXPECT_TRUE(entry.refused);
        if (entry.outcome == "403") ++alone;
        if (entry.outcome == "429") counted += entry.requests;
    }
    EXPECT_EQ(alone, 4U);
    EXPECT_EQ(counted, 6U);
    EXPECT_LE(entries.size(), 6U) << "a row for each minute";
}

// The uid of a proxy that many clients use, and root: neither shares with its clients, and root has
// no more than they.
TEST_F(GateTest, RootAndTheTokensOfOneUidAreLimitedEachByItself) {
    auto const post_by = [&](char const* who) {
        http::Request request = http::make_request("POST", "/v1/tokens");
        request.peer = http::UnixPeer{};
        if (who) request.headers["authorization"] = std::string("Bearer vfm_") + who;
        std::promise<http::Response> answer;
        auto answered = answer.get_future();
        handler(std::move(request),
                [&](http::Response response) { answer.set_value(std::move(response)); });
        return answered.get().status;
    };
    for (int i = 0; i < 3; ++i) EXPECT_EQ(post_by(nullptr), 400);
    EXPECT_EQ(post_by(nullptr), 429) << "uid:0";
    for (auto const* who : {"viewer", "operator"}) {
        for (int i = 0; i < 3; ++i) EXPECT_EQ(post_by(who), 403) << who;
        EXPECT_EQ(post_by(who), 429) << who;
    }
}

TEST_F(GateTest, AFailedAuthenticationIsLoggedAndCounted) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < 300; ++i) {
        auto const status = ask("nobody", "GET", "/livez").status;
        EXPECT_TRUE(status == 401 || (i > 0 && status == 429)) << status;
    }
    auto const lines = testing::internal::GetCapturedStderr();
    EXPECT_THAT(lines, HasSubstr("authentication failed who=address:192.0.2.9"));
    EXPECT_THAT(lines, HasSubstr("request_id=the-id"));
    EXPECT_LT(std::ranges::count(lines, '\n'), 100);
    EXPECT_FALSE(presence->known);
    std::uint64_t requests = 0;
    std::uint64_t alone = 0;
    for (auto const& entry : audit()) {
        EXPECT_EQ(entry.who, "address:192.0.2.9");
        EXPECT_EQ(entry.from, "address:192.0.2.9");
        requests += entry.requests;
        if (entry.request_id == "the-id" && entry.action == "GET /livez") ++alone;
    }
    EXPECT_EQ(requests, 300U);
    EXPECT_GE(alone, 60U) << "a few have an entry of their own";
    EXPECT_LT(alone, 70U);
    EXPECT_EQ(ask("viewer", "GET", "/livez").status, 200) << "who is known at that address";
    EXPECT_TRUE(presence->known);
}

TEST_F(GateTest, ScopesNarrowWhatTheRoleMayDo) {
    save_scoped("viewer", {"operations"});
    for (auto const* path : {"/v1", "/livez", "/readyz"})
        EXPECT_NE(ask("scoped", "GET", path).status, 403) << path;
    EXPECT_EQ(ask("scoped", "GET", "/v1/operations").status, 200);
    EXPECT_EQ(ask("scoped", "GET", "/v1/operations/x").status, 404);
    EXPECT_THAT(ask("scoped", "GET", "/v1/tokens").body, HasSubstr("needs role admin"));
    save_scoped("admin", {"operations"});
    auto const refused = ask("scoped", "GET", "/v1/tokens");
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("token:scoped has the scopes operations, but this request "
                                        "needs scope tokens"));
    EXPECT_EQ(audit().at(0).who, "token:scoped") << "as any other denial";
}

TEST_F(GateTest, ScopesAreNounsAndNoTokenHandsOutMoreThanItsOwn) {
    config.changes = {.burst = 100, .per_second = 1};
    open();
    save_token("admin");
    auto const misspelt =
        post("admin", "/v1/tokens", R"({"role": "viewer", "scopes": ["audits"]})");
    EXPECT_EQ(misspelt.status, 422);
    EXPECT_THAT(
        misspelt.body,
        HasSubstr("choose from attachments, audit, fleet, identities, networks, operations, "
                  "pfs, pools, reservations, vfs, vms, tokens"));
    save_scoped("admin", {"tokens", "audit"});
    EXPECT_EQ(post("scoped", "/v1/tokens", R"({"role": "viewer", "scopes": ["audit"]})").status,
              201);
    EXPECT_EQ(post("scoped", "/v1/tokens", R"({"role": "viewer"})").status, 403);
    EXPECT_EQ(post("scoped", "/v1/tokens/admin/rotate", "").status, 403)
        << "its next secret would be one without scopes";
    EXPECT_EQ(post("scoped", "/v1/tokens/scoped/rotate", "").status, 200);
}

TEST_F(GateTest, ANewSecretReplacesTheOldOneAtOnceOrLater) {
    config.changes = {.burst = 100, .per_second = 1};
    open();
    save_token("admin");
    auto const secret_of = [](http::Response const& answer) {
        EXPECT_EQ(answer.status, 200) << answer.body;
        return nlohmann::json::parse(answer.body).at("token").get<std::string>().substr(4);
    };
    auto const with_grace =
        secret_of(post("admin", "/v1/tokens/viewer/rotate", R"({"grace_seconds": 3600})"));
    EXPECT_EQ(ask("viewer", "GET", "/v1/operations").status, 200);
    EXPECT_EQ(ask(with_grace.c_str(), "GET", "/v1/operations").status, 200);
    auto const at_once = secret_of(post("admin", "/v1/tokens/viewer/rotate", ""));
    EXPECT_EQ(ask("viewer", "GET", "/v1/operations").status, 401);
    EXPECT_EQ(ask(with_grace.c_str(), "GET", "/v1/operations").status, 401);
    EXPECT_EQ(ask(at_once.c_str(), "GET", "/v1/operations").status, 200);
    EXPECT_EQ(post("admin", "/v1/tokens/viewer/rotate", R"({"grace_seconds": 86401})").status, 422);
    EXPECT_EQ(post("admin", "/v1/tokens/nobody/rotate", "").status, 404);
}

TEST_F(GateTest, ATokensLastUseIsListedAtOnce) {
    save_token("admin");
    EXPECT_EQ(ask("viewer", "GET", "/livez").status, 200);
    auto const list = nlohmann::json::parse(ask("admin", "GET", "/v1/tokens").body).at("items");
    std::map<std::string, nlohmann::json> used;
    for (auto const& token : list) used[token.at("id")] = token.at("last_used_from");
    EXPECT_EQ(used.at("viewer"), "address:192.0.2.9");
    EXPECT_EQ(used.at("operator"), nullptr);
}

// By its own name: the certificate was verified, so nobody else fails in its name.
TEST_F(GateTest, ACertificateWithoutARoleIsLoggedCountedAndSlowedDown) {
    peer.certificate = {{"a.example"}, Time::max()};
    testing::internal::CaptureStderr();
    int slowed_down = 0;
    for (int i = 0; i < 300; ++i) {
        auto const answer = ask(nullptr, "GET", "/livez");
        EXPECT_TRUE(answer.status == 403 || answer.status == 429) << answer.status;
        if (answer.status == 429 && answer.hold.count() > 0) ++slowed_down;
    }
    EXPECT_GT(slowed_down, 200);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("authentication failed who=cert:a.example"));
    EXPECT_FALSE(presence->known);
    std::uint64_t requests = 0;
    for (auto const& entry : audit())
        if (entry.who == "cert:a.example") requests += entry.requests;
    EXPECT_EQ(requests, 300U);
}

TEST_F(GateTest, ACertificateWithARoleIsAPrincipal) {
    config.roles.clients = {{"a.example", Role::operator_}};
    peer.certificate = {{"a.example"}, Time::max()};
    open();
    EXPECT_EQ(ask(nullptr, "GET", "/livez").status, 200);
    EXPECT_TRUE(presence->known);
    EXPECT_EQ(ask(nullptr, "GET", "/v1/audit").status, 403);
    EXPECT_EQ(audit().at(0).who, "cert:a.example");
    EXPECT_EQ(audit().at(0).from, "address:192.0.2.9");
}

TEST_F(GateTest, ARefusedHandshakeIsAFailedAuthentication) {
    auto const report = report_turned_away(audit_of(trail), system_clock());
    testing::internal::CaptureStderr();
    for (int i = 0; i < 300; ++i)
        report(peer, {Problem::unauthorized, "its certificate is refused: it expired", ""});
    report(peer, {Problem::unavailable, "no place", ""});
    auto const lines = testing::internal::GetCapturedStderr();
    EXPECT_THAT(lines,
                HasSubstr("connection refused who=address:192.0.2.9 detail=\"its certificate "
                          "is refused: it expired\""));
    EXPECT_LT(std::ranges::count(lines, '\n'), 10);
    auto const entries = audit();
    ASSERT_LE(entries.size(), 2U) << "a row for each minute";
    EXPECT_EQ(entries[0].who, "address:192.0.2.9");
    EXPECT_EQ(entries[0].outcome, "401");
    std::uint64_t requests = 0;
    for (auto const& entry : entries) requests += entry.requests;
    EXPECT_EQ(requests, 300U);
}

TEST_F(GateTest, ARequestIsLoggedWithItsId) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(ask("operator", "DELETE", "/v1/tokens/x").status, 403);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("status=403 request_id=the-id"));
}

TEST_F(GateTest, AWaitIsAWholeNumber) {
    for (auto const* wait : {"30s", "61", "-1", "1.5", ""})
        EXPECT_EQ(ask("viewer", "GET", "/v1/operations/x", {{"wait", wait}}).status, 400) << wait;
    EXPECT_EQ(ask("viewer", "GET", "/v1/operations/x", {{"wait", "60"}}).status, 404);
}

TEST_F(GateTest, TheAuditIsForAdmins) {
    EXPECT_EQ(ask("operator", "GET", "/v1/audit").status, 403);
    save_token("admin");
    trail->finish();
    EXPECT_EQ(ask("admin", "GET", "/v1/audit", {{"limit", "0"}}).status, 400);
    auto const answer = ask("admin", "GET", "/v1/audit", {{"limit", "1"}});
    auto const items = nlohmann::json::parse(answer.body).at("items");
    ASSERT_EQ(items.size(), 1U);
    EXPECT_EQ(items[0].at("who"), "token:operator");
    EXPECT_EQ(items[0].at("action"), "GET /v1/audit");
    EXPECT_EQ(items[0].at("requests"), 1);
    auto const filtered = ask("admin", "GET", "/v1/audit", {{"outcome", "200"}});
    EXPECT_TRUE(nlohmann::json::parse(filtered.body).at("items").empty()) << filtered.body;
}

TEST_F(GateTest, StrangersMaySeeThatItLives) {
    EXPECT_EQ(ask(stranger, "GET", "/livez").status, 200);
    auto const ready = ask(stranger, "GET", "/readyz");
    EXPECT_EQ(ready.status, 200);
    EXPECT_EQ(nlohmann::json::parse(ready.body),
              (nlohmann::json{
                  {"ready", true}, {"not_ready", nlohmann::json::array()}, {"drift", nullptr}}))
        << "names, and no more";
    EXPECT_EQ(ask(stranger, "GET", "/v1/problems/unauthorized").status, 200);
    for (auto const* path : {"/v1", "/v1/openapi.json", "/v1/pfs", "/v1/nothing", "/livez/x"})
        EXPECT_EQ(ask(stranger, "GET", path).status, 401) << path;
    for (auto const* method : {"POST", "DELETE"})
        EXPECT_EQ(ask(stranger, method, "/livez").status, 401) << method;
    EXPECT_EQ(ask("nobody", "GET", "/livez").status, 401) << "a token that is wrong is wrong";
    EXPECT_EQ(ask(stranger, "GET", "/livez", {{"x", "1"}}).status, 400);
    EXPECT_FALSE(presence->known) << "it stays a stranger";
    EXPECT_TRUE(nlohmann::json::parse(ask("viewer", "GET", "/readyz").body)["drift"].is_number());
}

TEST_F(GateTest, AFloodOfVisitsKeepsNobodyOut) {
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
        auto const answer = ask(stranger, "GET", "/livez");
        if (answer.status == 200) continue;
        ++refused;
        EXPECT_EQ(answer.status, 429);
        EXPECT_EQ(answer.headers.at("Retry-After"), "1");
        EXPECT_GT(answer.hold.count(), 0);
        EXPECT_THAT(answer.body, testing::Not(HasSubstr("changes_per_second")));
    }
    EXPECT_GT(refused, 100);
    EXPECT_EQ(ask("viewer", "GET", "/livez").status, 200);
    EXPECT_EQ(ask("viewer", "GET", "/v1/pfs").status, 200);
    EXPECT_EQ(ask("nobody", "GET", "/v1/pfs").status, 401) << "and is told what is wrong";
    std::uint64_t counted = 0;
    for (auto const& entry : audit())
        if (entry.outcome == "429") counted += entry.requests;
    EXPECT_EQ(counted, static_cast<std::uint64_t>(refused));
}

}  // namespace
}  // namespace vfmgr
