// SPDX-License-Identifier: Apache-2.0
// A fleet at the gate: how a host joins, who is let in then, and for whom.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/http/ca_pem.hpp"
#include "tests/unit/authority.hpp"
#include "tests/unit/service/routes/gated.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr auto fleet_id = "33333333-3333-3333-3333-333333333333";

struct FleetRoutes : test::Gated {
    test::Authority authority;
    std::string const pem = [this] {
        std::ifstream file(authority.certificate_file());
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }();

    [[nodiscard]] json membership() const {
        return {{"fleet", fleet_id},
                {"host", "host1"},
                {"urls", {"https://fleet1.example:8480"}},
                {"ca", pem}};
    }
    http::Response put(json const& body) {
        return ask("admin", "PUT", "/v1/fleet", {}, body.dump(), as_json);
    }
    void SetUp() override {
        Gated::SetUp();
        config.changes = {.burst = 1000, .per_second = 1000};
        save_token("admin");
        open();
    }
    void join() { ASSERT_EQ(put(membership()).status, 200); }
    // From now on this client shows a certificate of the fleet's CA.
    void show(std::string name = std::string("vfmgr://") + fleet_id + "/replica/fleet1") {
        peer.certificate = http::PeerCertificate{
            {std::move(name)}, Time::max(), http::ca_fingerprint(pem).value()};
    }
    http::Response by_fleet(char const* method, std::string path,
                            std::map<std::string, std::string> headers = {},
                            std::string body = {}) {
        if (!body.empty()) headers.insert(as_json.begin(), as_json.end());
        return ask(test::stranger, method, std::move(path), {}, std::move(body),
                   std::move(headers));
    }
    static std::string code_of(http::Response const& response) {
        return json::parse(response.body)["code"];
    }
    json shown() { return json::parse(ask("viewer", "GET", "/v1/fleet").body); }
};

TEST_F(FleetRoutes, AMemberLetsItsFleetIn) {
    show();
    EXPECT_EQ(by_fleet("GET", "/v1").status, 403) << "not before";
    EXPECT_TRUE(shown()["membership"].is_null());
    join();
    EXPECT_EQ(by_fleet("GET", "/v1").status, 200);
    auto const view = shown();
    EXPECT_EQ(view["membership"]["host"], "host1");
    EXPECT_EQ(view["membership"]["ca"], pem);
    EXPECT_TRUE(view["membership"].contains("contacted_at"));
    EXPECT_EQ(view["store"].get<std::string>().size(), 32U);
    EXPECT_GT(view["last_event"], 0);
    EXPECT_TRUE(std::filesystem::exists(folder.file("fleet-ca.pem")));
    EXPECT_EQ(ask("admin", "DELETE", "/v1/fleet").status, 204);
    EXPECT_EQ(by_fleet("GET", "/v1").status, 403);
    EXPECT_FALSE(std::filesystem::exists(folder.file("fleet-ca.pem")));
}

TEST_F(FleetRoutes, AMemberIsReachedOverTlsByAFleetWithACa) {
    auto no_ca = membership();
    for (std::string const& ca : {std::string(), std::string("PEM"), pem + pem}) {
        no_ca["ca"] = ca;
        auto const refused = put(no_ca);
        EXPECT_EQ(refused.status, 422) << ca;
        EXPECT_THAT(refused.body, HasSubstr("/ca"));
    }
    auto const client = authority.issue({});
    std::ifstream file(client.certificate_file);
    std::ostringstream text;
    text << file.rdbuf();
    no_ca["ca"] = text.str();
    EXPECT_THAT(put(no_ca).body, HasSubstr("it is no CA's certificate"));
    serves_tls = false;
    open();
    auto const refused = put(membership());
    EXPECT_EQ(refused.status, 409);
    EXPECT_THAT(refused.body, HasSubstr("[listen.tls]"));
    EXPECT_EQ(ask("viewer", "GET", "/v1/fleet").status, 200);
    EXPECT_EQ(ask("operator", "PUT", "/v1/fleet", {}, membership().dump(), as_json).status, 403);
}

TEST_F(FleetRoutes, AnotherCertificateOfItsCaHasNoRole) {
    config.roles.clients = {{"a.example", Role::admin}};
    open();
    join();
    show("a.example");
    auto const refused = by_fleet("GET", "/v1");
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("of no replica of fleet"));
    peer.certificate->authority = "another";
    EXPECT_EQ(by_fleet("GET", "/v1").status, 200) << "as before";
}

TEST_F(FleetRoutes, ActsAsAnAdminButNotOnWhatWouldOutliveIt) {
    join();
    show();
    EXPECT_EQ(by_fleet("PUT", "/v1/identities", {}, R"({"generation": 1})").status, 200);
    EXPECT_EQ(by_fleet("POST", "/v1/fleet/confirm").status, 204);
    for (auto const* const path : {"/v1/tokens", "/v1/audit"})
        EXPECT_EQ(by_fleet("GET", path).status, 403) << path;
    for (auto const* const method : {"PUT", "DELETE"})
        EXPECT_EQ(by_fleet(method, "/v1/fleet", {}, membership().dump()).status, 403) << method;
    EXPECT_THAT(by_fleet("DELETE", "/v1/fleet").body, HasSubstr("comes by this host's fleet"));
    EXPECT_FALSE(shown()["membership"].is_null());
}

TEST_F(FleetRoutes, PassesOnWhatAClientMay) {
    join();
    show();
    auto const as = [](char const* role) {
        return std::map<std::string, std::string>{
            {"vfmgr-on-behalf-of",
             std::string(R"({"who": "token:ab12cd34", "role": ")") + role + R"("})"}};
    };
    EXPECT_EQ(by_fleet("PUT", "/v1/pools/fast", as("operator"), "{}").status, 403);
    EXPECT_EQ(by_fleet("PUT", "/v1/pools/fast", as("admin"), "{}").status, 200);
    EXPECT_EQ(by_fleet("GET", "/v1/tokens", as("admin")).status, 403);
    EXPECT_EQ(by_fleet("GET", "/v1", {{"vfmgr-on-behalf-of", "nobody"}}).status, 400);
    auto const entries = audit();
    auto const of_client = std::ranges::find(entries, "fleet:token:ab12cd34", &AuditEntry::who);
    ASSERT_NE(of_client, entries.end());
    EXPECT_EQ(of_client->from, "address:192.0.2.9 fleet:fleet1");
    auto const own = std::ranges::find(entries, "fleet:fleet1", &AuditEntry::who);
    ASSERT_NE(own, entries.end());
    EXPECT_EQ(own->from, "address:192.0.2.9");
}

TEST_F(FleetRoutes, ItsHeadersAreNobodyElses) {
    for (auto const* const header : {"vfmgr-on-behalf-of", "vfmgr-fence"}) {
        auto const refused = ask("admin", "GET", "/v1", {}, {}, {{header, "1"}});
        EXPECT_EQ(refused.status, 400) << header;
        EXPECT_THAT(refused.body, HasSubstr("token:admin is no replica"));
    }
}

TEST_F(FleetRoutes, AFenceIsDurableBeforeWhatComesWithIt) {
    join();
    show();
    auto const with = [](char const* fence) {
        return std::map<std::string, std::string>{{"vfmgr-fence", fence}};
    };
    EXPECT_EQ(by_fleet("GET", "/v1/pools", with("12")).status, 200);
    EXPECT_EQ(shown()["membership"]["fence"], 12);
    for (auto const* const method : {"GET", "PUT"}) {
        auto const refused = by_fleet(method, "/v1/pools/fast", with("11"),
                                      method == std::string("PUT") ? "{}" : "");
        EXPECT_EQ(refused.status, 412) << method;
        EXPECT_THAT(refused.body, HasSubstr("an older scheduler of the fleet"));
    }
    EXPECT_EQ(by_fleet("PUT", "/v1/pools/fast", with("12"), "{}").status, 200);
    EXPECT_EQ(by_fleet("PUT", "/v1/pools/fast", with("13"), "{}").status, 200);
    EXPECT_EQ(by_fleet("PUT", "/v1/pools/fast", with("12"), "{}").status, 412);
    EXPECT_EQ(by_fleet("GET", "/v1/pools").status, 200) << "not every request is a scheduler's";
}

TEST_F(FleetRoutes, TheFleetAndItsClientsHaveLimitsOfTheirOwn) {
    config.changes = {.burst = 2, .per_second = 0.001};
    config.fleet_changes = {.burst = 4, .per_second = 0.001};
    open();
    join();
    show();
    auto const put_pool = [&](std::map<std::string, std::string> const& headers) {
        return by_fleet("PUT", "/v1/pools/fast", headers, "{}");
    };
    for (int i = 0; i < 4; ++i) EXPECT_EQ(put_pool({}).status, 200);
    auto const refused = put_pool({});
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body, HasSubstr("limits.fleet_changes_per_second"));
    for (auto const* const who : {"token:a", "token:b"}) {
        std::map<std::string, std::string> const headers{
            {"vfmgr-on-behalf-of", std::string(R"({"who": ")") + who + R"(", "role": "admin"})"}};
        for (int i = 0; i < 2; ++i) EXPECT_EQ(put_pool(headers).status, 200) << who;
        EXPECT_EQ(put_pool(headers).status, 429) << who;
    }
}

TEST_F(FleetRoutes, IdentitiesSayHowManyAreFree) {
    auto const body = R"({"generation": 1, "macs": ["52:54:00:10:00:00-52:54:00:10:00:ff"]})";
    auto const answer = ask("admin", "PUT", "/v1/identities", {}, body, as_json);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(json::parse(answer.body)["free"]["macs"], 256);
    EXPECT_EQ(ask("admin", "PUT", "/v1/identities", {}, answer.body, as_json).status, 200)
        << "an answer can be sent back";
    EXPECT_EQ(ask("admin", "PUT", "/v1/identities", {}, R"({"generation": 0})", as_json).status,
              412);
}

}  // namespace
}  // namespace vfmgr
