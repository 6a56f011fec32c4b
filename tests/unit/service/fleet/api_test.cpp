// SPDX-License-Identifier: Apache-2.0
// The fleet's routes behind their gate, without sockets.
#include "service/fleet/api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <nlohmann/json.hpp>

#include "service/fleet/metrics.hpp"
#include "service/fleet/reload.hpp"

namespace vfmgr::fleet {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct FleetApi : testing::Test {
    Workers workers{{.threads = 2, .waiting_max = 8, .waiting_each_max = 2}};
    AuditRing audit;
    FleetMetrics metrics;
    TokenUses uses;
    Sessions sessions;
    RulesInForce rules{{{}, {.burst = 3, .per_second = 0.001}, {}}};
    std::vector<std::string> not_ready;
    std::shared_ptr<std::map<std::string, Token> const> tokens =
        std::make_shared<std::map<std::string, Token> const>(
            std::map<std::string, Token>{of("viewer"), of("operator"), of("admin")});
    std::vector<FleetRoute> more;  // the rest of the program's
    http::Handler handler;

    void SetUp() override { open(); }
    void open() {
        FleetSeams const seams{[this] { return Access{tokens, std::make_shared<Tenants const>()}; },
                               [this] { return not_ready; }, [] { return MetricFamilies(); },
                               [](std::map<std::string, TokenUse> const&) {}, more};
        auto gate = api_gate(
            {rules, seams.access, audit.audit(), uses, sessions, system_clock(), this_program()});
        gate.every = [this](Endpoint const* endpoint, http::Request const& request,
                            http::Response const& response) {
            metrics.answered(endpoint, request.method, static_cast<unsigned>(response.status));
        };
        handler = fleet_handler(all_routes({workers, audit, metrics}, seams), std::move(gate));
    }
    static std::pair<std::string const, Token> of(std::string const& role) {
        auto const sha256 = token_sha256("vfm_" + role);
        return {sha256, Token{role, sha256, role, "", {}, {}}};
    }
    // nullptr: a stranger.
    std::future<http::Response> begin(char const* who, std::string method, std::string path,
                                      std::map<std::string, std::string> headers = {}) {
        auto request = http::make_request(std::move(method), std::move(path));
        request.headers = std::move(headers);
        request.headers["x-request-id"] = "the-id";
        if (who) request.headers["authorization"] = std::string("Bearer vfm_") + who;
        request.peer = http::TcpPeer{"192.0.2.9"};
        auto const answer = std::make_shared<std::promise<http::Response>>();
        handler(std::move(request),
                [answer](http::Response response) { answer->set_value(std::move(response)); });
        return answer->get_future();
    }
    http::Response ask(char const* who, std::string method, std::string path,
                       std::map<std::string, std::string> headers = {}) {
        return begin(who, std::move(method), std::move(path), std::move(headers)).get();
    }
};

TEST_F(FleetApi, SaysWhatItIs) {
    auto const about = json::parse(ask("viewer", "GET", "/v1").body);
    EXPECT_EQ(about.at("name"), "vfmgr-fleetd");
    EXPECT_EQ(about.at("api"), "v1");
    EXPECT_EQ(ask(nullptr, "GET", "/v1").status, 401);
}

TEST_F(FleetApi, LivesWhateverIsInTheWayAndIsReadyWhenNothingIs) {
    not_ready = {"etcd"};
    EXPECT_EQ(ask(nullptr, "GET", "/livez").status, 200);
    auto const waiting = ask(nullptr, "GET", "/readyz");
    EXPECT_EQ(waiting.status, 503);
    EXPECT_EQ(waiting.headers.at("Retry-After"), "5");
    EXPECT_EQ(json::parse(waiting.body),
              json({{"ready", false}, {"not_ready", json::array({"etcd"})}}));
    not_ready.clear();
    EXPECT_EQ(ask(nullptr, "GET", "/readyz").status, 200);
}

TEST_F(FleetApi, TheDocumentIsWholeAndKnownAgain) {
    auto const answer = ask("viewer", "GET", "/v1/openapi.json");
    auto const document = json::parse(answer.body);
    EXPECT_EQ(document.at("info").at("title"), "vfmgr fleet");
    EXPECT_TRUE(document.at("components").at("schemas").contains("AuditEntry"));
    EXPECT_EQ(answer.body.find("openapi.yaml#"), std::string::npos);
    auto const etag = answer.headers.at("ETag");
    EXPECT_EQ(ask("viewer", "GET", "/v1/openapi.json", {{"if-none-match", etag}}).status, 304);
    EXPECT_EQ(json::parse(ask(nullptr, "GET", "/v1/problems/conflict").body).at("status"), 409);
    EXPECT_EQ(ask(nullptr, "GET", "/v1/problems/x").status, 404);
}

TEST_F(FleetApi, TheAuditIsForAdminsAndNamesWhoWasRefused) {
    EXPECT_EQ(ask("operator", "GET", "/v1/audit").status, 403);
    auto const page = json::parse(ask("admin", "GET", "/v1/audit").body);
    ASSERT_EQ(page.at("items").size(), 1U);
    auto const& entry = page.at("items")[0];
    EXPECT_EQ(entry.at("who"), "token:operator");
    EXPECT_EQ(entry.at("action"), "GET /v1/audit");
    EXPECT_EQ(entry.at("outcome"), "403");
    EXPECT_EQ(entry.at("request_id"), "the-id");
    EXPECT_EQ(entry.at("from"), "address:192.0.2.9");
    EXPECT_EQ(page.at("next"), nullptr);
}

TEST_F(FleetApi, WhoAsksTooOftenIsToldWhichFileSetsTheRate) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("viewer", "DELETE", "/v1/audit").status, 405);
    auto const refused = ask("viewer", "DELETE", "/v1/audit");
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body, HasSubstr("/etc/vfmgr/fleetd.toml"));
    EXPECT_EQ(audit.rows("token:viewer", "429", {}).items.at(0).requests, 1U);
}

TEST_F(FleetApi, MetricsCountAnswersByRoute) {
    EXPECT_EQ(ask("viewer", "GET", "/v1").status, 200);
    EXPECT_EQ(ask("viewer", "GET", "/v1").status, 200);
    auto const text = ask("viewer", "GET", "/metrics").body;
    EXPECT_THAT(text, HasSubstr("vfmgr_api_requests_total{code=\"200\",method=\"GET\","
                                "route=\"/v1\"} 2"));
    EXPECT_THAT(text, HasSubstr("vfmgr_build_info{version="));
    EXPECT_THAT(text, HasSubstr("vfmgr_fleet_requests_running 1"));
    EXPECT_THAT(text, HasSubstr("process_open_fds"));
}

// Work that waits for a host answers on another thread, keeps its call, and has a share.
TEST_F(FleetApi, WorkAnswersLaterAndTooMuchOfItIsRefused) {
    std::promise<void> go_on;
    auto const may = go_on.get_future().share();
    more = {{{"GET", "/v1/slow/{name}", Role::viewer},
             on_workers(workers,
                        [may](Call const& call, std::stop_token const&) -> Result<http::Response> {
                            may.wait();
                            if (call.ids.at("name") == "bug") throw std::runtime_error("oh no");
                            return json_response(200, {{"name", call.ids.at("name")}});
                        })}};
    open();
    auto good = begin("viewer", "GET", "/v1/slow/one");
    auto bug = begin("viewer", "GET", "/v1/slow/bug");
    auto const third = ask("viewer", "GET", "/v1/slow/two");
    EXPECT_EQ(third.status, 503);
    EXPECT_EQ(third.headers.at("Retry-After"), "5");
    EXPECT_THAT(third.body, HasSubstr("2 requests from token:viewer are waiting already"));
    EXPECT_EQ(ask("viewer", "GET", "/livez").status, 200) << "meanwhile";
    go_on.set_value();
    EXPECT_EQ(json::parse(good.get().body).at("name"), "one");
    EXPECT_EQ(bug.get().status, 500);
}

}  // namespace
}  // namespace vfmgr::fleet
