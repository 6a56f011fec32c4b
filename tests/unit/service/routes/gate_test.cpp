// SPDX-License-Identifier: Apache-2.0
// Request limits per client and what is left of them: router and gate, on an engine with fakes.
#include "service/routes/gate.hpp"

#include <gmock/gmock.h>

#include "service/event_log.hpp"
#include "service/reload.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

struct GateTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path()};
    std::shared_ptr<AuditTrail> trail = std::make_shared<AuditTrail>(bench.engine.control());
    TokenUses uses;
    Config config;
    RulesInForce rules{{}};
    http::Handler handler;
    std::string body_;

    void SetUp() override {
        config.changes = {.burst = 3, .per_second = 0.001};
        for (auto const* role : {"viewer", "operator"}) save_token(role);
        open();
    }
    void open() {
        rules.set(resolve_access(config).rules);
        std::vector<Route> routes;
        for (auto& more :
             {audit_routes(bench.engine), root_routes(), operation_routes(bench.engine)})
            routes.insert(routes.end(), more.begin(), more.end());
        for (auto& route : token_routes({bench.engine, system_clock(), uses, nouns_of(routes)}))
            routes.push_back(route);
        handler = router(bench.engine, std::move(routes),
                         api_gate(rules, bench.engine, trail, uses, system_clock()));
    }
    template <class T>
    static T answer_of(Query<T> const& query) {
        std::promise<T> answer;
        query.ask({"test", {}},
                  [&](Result<T> result) { answer.set_value(std::move(result.value())); });
        return answer.get_future().get();
    }
    void save_token(std::string const& role) {
        answer_of(bench.engine.save_token({role, token_sha256("vfm_" + role), role, "", {}, {}}));
    }
    void save_scoped(std::string const& role, std::vector<std::string> scopes) {
        answer_of(bench.engine.save_token(
            {"scoped", token_sha256("vfm_scoped"), role, "", {}, {}, std::move(scopes)}));
    }
    http::Response post(char const* who, std::string path, std::string body) {
        body_ = std::move(body);
        auto answer = ask(who, "POST", std::move(path));
        body_.clear();
        return answer;
    }
    http::Response ask(char const* who, char const* method, std::string path,
                       std::map<std::string, std::string> query = {}) {
        http::Request request;
        request.method = method;
        request.path = std::move(path);
        request.query = std::move(query);
        request.headers = {{"x-request-id", "the-id"}};
        if (who) request.headers["authorization"] = std::string("Bearer vfm_") + who;
        request.peer = peer;
        request.presence = presence;
        request.body = body_;
        if (!body_.empty()) request.headers["content-type"] = "application/json";
        std::promise<http::Response> answer;
        auto answered = answer.get_future();
        handler(std::move(request),
                [&](http::Response response) { answer.set_value(std::move(response)); });
        return answered.get();
    }
    std::vector<AuditEntry> audit() {
        trail->finish();
        return answer_of(bench.engine.audit({}, {})).items;
    }
    std::shared_ptr<http::Presence> presence = std::make_shared<http::Presence>();
    http::TcpPeer peer{"192.0.2.9"};
};

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
    for (auto const& entry : audit())
        if (entry.who == "address:192.0.2.9") requests += entry.requests;
    EXPECT_EQ(requests, 300U);
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
    EXPECT_THAT(misspelt.body, HasSubstr("choose from audit, operations, tokens"));
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
}

TEST_F(GateTest, ARefusedHandshakeIsAFailedAuthentication) {
    auto const report = report_turned_away(trail, system_clock());
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
}

}  // namespace
}  // namespace vfmgr
