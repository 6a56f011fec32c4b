// SPDX-License-Identifier: Apache-2.0
// vfctl token: what it sends, and that the secret alone is printed.
#include "api/types/daemon.hpp"
#include "api/types/time.hpp"
#include "tests/unit/service/cli/answering_api.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;

TEST(Token, CreatePrintsTheSecretAlone) {
    Api api;
    api.on("POST /v1/tokens", 201, NewTokenView{{"t1", "operator", "ci", {}, {}}, "vfm_abc"});
    auto const ran =
        vfctl(api, {"token", "create", "--role", "operator", "--name", "ci", "--days", "30"});
    EXPECT_EQ(ran.out, "vfm_abc\n");
    EXPECT_EQ(ran.err,
              "vfctl: token t1 has role operator and never expires; its secret is shown only this "
              "once\n");
    EXPECT_EQ(api.asked("POST /v1/tokens").body,
              R"({"days":30,"description":"ci","role":"operator"})");
}

TEST(Token, ScopesAndEndAreSentAsGiven) {
    Api api;
    api.on("POST /v1/tokens", 201, NewTokenView{{"t1", "viewer", "", {}, {}}, "vfm_abc"});
    vfctl(api, {"token", "create", "--scope", "vms", "--scope", "operations", "--expires-at",
                "2026-01-31T12:00:00Z"});
    EXPECT_EQ(
        api.all_asked("POST /v1/tokens").at(0).body,
        R"({"expires_at":"2026-01-31T12:00:00Z","role":"viewer","scopes":["vms","operations"]})");
    vfctl(api, {"token", "create", "--never-expires"});
    EXPECT_EQ(api.all_asked("POST /v1/tokens").at(1).body,
              R"({"never_expires":true,"role":"viewer"})");
    EXPECT_EQ(vfctl(api, {"token", "create", "--never-expires", "--days", "1"}).code, 2);
}

TEST(Token, RotatePrintsTheSecretAlone) {
    Api api;
    api.on("POST /v1/tokens/t1/rotate", 200,
           NewTokenView{{"t1", "operator", "ci", {}, *parse_rfc3339("2026-01-31T12:00:00.000Z")},
                        "vfm_def"});
    auto const ran = vfctl(api, {"token", "rotate", "t1", "--grace", "60"});
    EXPECT_EQ(ran.out, "vfm_def\n");
    EXPECT_EQ(ran.err,
              "vfctl: token t1 has another secret and expires at 2026-01-31T12:00:00.000Z; the "
              "secret is shown only this once\n");
    EXPECT_EQ(api.asked("POST /v1/tokens/t1/rotate").body, R"({"grace_seconds":60})");
    EXPECT_EQ(vfctl(api, {"token", "rotate", "t1", "-o", "name"}).code, 2);
    EXPECT_EQ(api.all_asked("POST /v1/tokens/t1/rotate").size(), 1U)
        << "output without the secret is refused before the old one is lost";
}

TEST(Token, ListShowsWhatMatters) {
    Api api;
    TokenView used{"t1", "operator", "ci", *parse_rfc3339("2026-01-31T12:00:00.000Z"),
                   *parse_rfc3339("2026-01-31T12:00:01.000Z")};
    used.scopes = {"vms", "operations"};
    used.last_used_at = *parse_rfc3339("2026-01-31T12:00:00.500Z");
    used.last_used_from = "address:10.0.0.9";
    used.tenant = "blue";
    TokenView eternal{"t2", "viewer", "", *parse_rfc3339("2026-01-31T12:00:00.000Z"), {}};
    eternal.never_expires = true;
    api.on("GET /v1/tokens", 200, {{"items", {used, eternal}}, {"next", nullptr}});
    EXPECT_EQ(vfctl(api, {"token", "list", "-o", "csv", "--no-headers"}).out,
              "t1,operator,\"vms,operations\",ci,2026-01-31T12:00:00.000Z,2026-01-31T12:00:01.000Z,"
              "2026-01-31T12:00:00.500Z,address:10.0.0.9,blue\r\n"
              "t2,viewer,all,,2026-01-31T12:00:00.000Z,never,,,\r\n");
}

}  // namespace
}  // namespace vfmgr
