// SPDX-License-Identifier: Apache-2.0
// Who is the fleet on a host, whose requests it passes on, and what is closed to it.
#include "service/auth/fleet_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;

Time const this_hour = Time(std::chrono::hours(1));
FleetTrust const fleet_trust{"33333333-3333-3333-3333-333333333333", std::string(64, 'a')};
auto const replica_uri = "vfmgr://" + fleet_trust.fleet + "/replica/fleet1";

http::TcpPeer showing_of(std::vector<std::string> names,
                         std::string authority = fleet_trust.authority,
                         Time expires_at = this_hour + std::chrono::hours(1)) {
    return {
        "10.0.0.1", http::PeerCertificate{std::move(names), expires_at, std::move(authority)}, {}};
}

RoleRules const own_rules{.uids = {},
                          .gids = {},
                          .clients = {{replica_uri, Role::viewer}, {"a.example", Role::operator_}}};

Result<Principal> authenticated(http::Peer const& peer, FleetTrust const* fleet = &fleet_trust) {
    return authenticate(peer, {}, own_rules, {}, this_hour, {}, {}, fleet);
}

TEST(FleetCertificate, IsAReplicasByItsUri) {
    auto const who = authenticated(showing_of({"x", replica_uri}));
    ASSERT_TRUE(who) << who.error().detail;
    EXPECT_EQ(who->name, "fleet:fleet1");
    EXPECT_EQ(who->role, Role::admin);
    EXPECT_EQ(who->fleet_replica, "fleet1");
    EXPECT_TRUE(is_replica_itself(*who));
}

TEST(FleetCertificate, IsNobodysWithoutSuchAUri) {
    auto const other_fleet = "vfmgr://44444444-4444-4444-4444-444444444444/replica/fleet1";
    for (std::vector<std::string> const& names :
         {std::vector<std::string>{"a.example"},
          {other_fleet},
          {},
          {replica_uri + "/x"},
          {"vfmgr://" + fleet_trust.fleet + "/host/fleet1"}}) {
        auto const who = authenticated(showing_of(names));
        ASSERT_FALSE(who) << names.size();
        EXPECT_EQ(who.error().problem, Problem::forbidden);
        EXPECT_THAT(who.error().detail, HasSubstr("of no replica of fleet 3333"));
        EXPECT_THAT(who.error().remedy, HasSubstr("vfmgr://" + fleet_trust.fleet + "/replica/"));
    }
    EXPECT_EQ(
        authenticated(showing_of({replica_uri}, fleet_trust.authority, this_hour)).error().problem,
        Problem::unauthorized)
        << "expired";
}

TEST(FleetCertificate, OfAnotherCaIsNeverTheFleets) {
    auto const who = authenticated(showing_of({replica_uri}, std::string(64, 'b')));
    EXPECT_EQ(who->name, "cert:" + replica_uri);
    EXPECT_EQ(who->role, Role::viewer) << "what [tls.clients] gives it";
    EXPECT_FALSE(who->fleet_replica);
    FleetTrust const unknown{fleet_trust.fleet, {}};
    EXPECT_FALSE(authenticated(showing_of({replica_uri}, {}), &unknown)->fleet_replica)
        << "two that are not known are not the same";
    EXPECT_FALSE(authenticated(showing_of({replica_uri}), nullptr)->fleet_replica) << "in no fleet";
}

TEST(FleetCertificate, HoldsWhileThisHostIsInItsFleet) {
    auto const peer = showing_of({replica_uri});
    auto const who = authenticated(peer).value();
    EXPECT_TRUE(still_holds(who, peer, own_rules, {}, this_hour, {}, {}, &fleet_trust));
    EXPECT_FALSE(still_holds(who, peer, own_rules, {}, this_hour));
}

struct FleetCalls : testing::Test {
    Principal replica{"fleet:fleet1", Role::admin};
    Tenants tenants{{"blue", {{"blue", {}, {}, {}}, 1}}};
    FleetCalls() { replica.fleet_replica = "fleet1"; }
    [[nodiscard]] Result<FleetCall> on_behalf(std::string const& header) const {
        return fleet_call(replica, {{"vfmgr-on-behalf-of", header}}, tenants);
    }
    [[nodiscard]] Result<FleetCall> with_fence(std::string const& header) const {
        return fleet_call(replica, {{"vfmgr-fence", header}}, tenants);
    }
};

TEST_F(FleetCalls, AreTheReplicasOwnWithoutAHeader) {
    auto const call = fleet_call(replica, {}, tenants).value();
    EXPECT_EQ(call.who.name, "fleet:fleet1");
    EXPECT_FALSE(call.fence);
}

TEST_F(FleetCalls, OnBehalfOfAClientAreThatClients) {
    auto const call =
        on_behalf(R"({"who": "token:ab12cd34", "role": "operator", "tenant": "blue"})");
    ASSERT_TRUE(call) << call.error().detail;
    EXPECT_EQ(call->who.name, "fleet:token:ab12cd34");
    EXPECT_EQ(call->who.role, Role::operator_);
    EXPECT_EQ(call->who.tenant->tenant.name, "blue");
    EXPECT_EQ(call->who.fleet_replica, "fleet1");
    EXPECT_FALSE(is_replica_itself(call->who));
    EXPECT_EQ(on_behalf(R"({"who": "uid:0", "role": "admin"})")->who.role, Role::admin);
}

TEST_F(FleetCalls, OnBehalfOfATenantThatThisHostLacksAreForbidden) {
    auto const call = on_behalf(R"({"who": "token:a", "role": "viewer", "tenant": "red"})");
    ASSERT_FALSE(call);
    EXPECT_EQ(call.error().problem, Problem::forbidden);
    EXPECT_THAT(call.error().detail, HasSubstr("tenant red, which does not exist"));
}

TEST_F(FleetCalls, SayWhoPlainly) {
    for (auto const* const header :
         {"", "{}", "[]", R"({"who": "token:a"})", R"({"who": "a", "role": "viewer"})",
          R"({"who": ":a", "role": "viewer"})", R"({"who": "token:", "role": "viewer"})",
          R"({"who": "token:a b", "role": "viewer"})", R"({"who": "Token:a", "role": "viewer"})",
          R"({"who": "token:a", "role": "owner"})",
          R"({"who": "token:a", "role": "viewer", "scopes": []})",
          R"({"who": "token:a", "role": "admin", "tenant": "blue"})",
          R"({"who": "token:a", "role": "viewer"}, {"who": "uid:0", "role": "admin"})"}) {
        auto const call = on_behalf(header);
        ASSERT_FALSE(call) << header;
        EXPECT_EQ(call.error().problem, Problem::invalid_request) << header;
    }
    auto const named = [&](std::size_t bytes) {
        return on_behalf(R"({"who": "token:)" + std::string(bytes, 'a') +
                         R"(", "role": "viewer"})");
    };
    EXPECT_TRUE(named(194));
    EXPECT_FALSE(named(195));
    EXPECT_THAT(named(2000).error().detail, HasSubstr("at most 1024 bytes"));
}

TEST_F(FleetCalls, ShowAFenceThatIsANumber) {
    EXPECT_EQ(with_fence("18446744073709551615")->fence, UINT64_MAX);
    EXPECT_EQ(with_fence("0")->fence, 0U);
    for (auto const* const header : {"", "-1", "1.0", " 1", "1, 2", "18446744073709551616"})
        EXPECT_EQ(with_fence(header).error().problem, Problem::invalid_request) << header;
}

TEST_F(FleetCalls, OfOthersHaveNoneOfItsHeaders) {
    Principal const admin{"uid:0", Role::admin};
    for (auto const* const header : {"vfmgr-on-behalf-of", "vfmgr-fence"}) {
        auto const call = fleet_call(admin, {{header, "1"}}, tenants);
        ASSERT_FALSE(call) << header;
        EXPECT_EQ(call.error().problem, Problem::invalid_request);
        EXPECT_THAT(call.error().detail, HasSubstr("uid:0 is no replica of this host's fleet"));
    }
    EXPECT_TRUE(fleet_call(admin, {{"x-request-id", "1"}}, tenants));
}

TEST_F(FleetCalls, FindWhatWouldOutliveTheMembershipClosed) {
    auto const closed = [&](Principal const& who, char const* method, char const* path) {
        auto const open = open_to_fleet(who, method, path);
        return !open && open.error().problem == Problem::forbidden;
    };
    auto const admin = on_behalf(R"({"who": "uid:0", "role": "admin"})")->who;
    for (auto const& who : {replica, admin}) {
        for (auto const* const path :
             {"/v1/tokens", "/v1/tokens/{id}/rotate", "/v1/sessions", "/v1/sessions/current",
              "/v1/audit", "/v1/pfs/{pci}/firmware"})
            for (auto const* const method : {"GET", "POST", "DELETE"})
                EXPECT_TRUE(closed(who, method, path)) << method << path;
        EXPECT_TRUE(closed(who, "PUT", "/v1/fleet"));
        EXPECT_TRUE(closed(who, "DELETE", "/v1/fleet"));
        EXPECT_FALSE(closed(who, "GET", "/v1/fleet"));
        EXPECT_FALSE(closed(who, "POST", "/v1/fleet/confirm"));
        EXPECT_FALSE(closed(who, "PUT", "/v1/pfs/{pci}/spec"));
        EXPECT_FALSE(closed(who, "PUT", "/v1/identities"));
    }
    EXPECT_FALSE(closed({"uid:0", Role::admin}, "DELETE", "/v1/fleet"));
}

}  // namespace
}  // namespace vfmgr
