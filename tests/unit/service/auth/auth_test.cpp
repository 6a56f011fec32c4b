// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>

#include <set>

#include "service/auth/authenticate.hpp"

namespace vfmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Time now = Time{} + std::chrono::hours(24 * 365 * 50);

using Tokens = std::map<std::string, Token>;

// What readers get of a store with this one token.
Tokens only(NewToken const& made, Role role, std::optional<Time> expires_at = {}) {
    return {
        {made.sha256, {made.id, made.sha256, std::string(enum_name(role)), {}, {}, expires_at}}};
}

http::UnixPeer user(std::uint32_t uid, std::uint32_t gid, std::vector<std::uint32_t> groups = {}) {
    return {uid, gid, 4711, std::move(groups)};
}

Result<Principal> local(http::UnixPeer peer, RoleRules const& rules) {
    return authenticate(peer, {}, rules, Tokens{}, now);
}

std::map<std::string, std::string> bearer(std::string const& secret) {
    return {{"authorization", "Bearer " + secret}};
}

TEST(UnixPeers, RootIsAlwaysAdmin) {
    auto const root = local(user(0, 0), {.uids = {{0, Role::viewer}}, .gids = {}});
    ASSERT_TRUE(root);
    EXPECT_EQ(root->name, "uid:0");
    EXPECT_EQ(root->role, Role::admin);
}

TEST(UnixPeers, TheHighestRoleOfUidAndGroups) {
    RoleRules const rules{.uids = {{1000, Role::viewer}, {1001, Role::admin}},
                          .gids = {{50, Role::operator_}, {51, Role::viewer}}};
    EXPECT_EQ(local(user(1000, 1), rules)->role, Role::viewer);
    EXPECT_EQ(local(user(1000, 50), rules)->role, Role::operator_);
    EXPECT_EQ(local(user(1001, 51), rules)->role, Role::admin);
    EXPECT_EQ(local(user(2000, 1, {7, 51, 50}), rules)->role, Role::operator_);
    EXPECT_EQ(local(user(2000, 51, {50}), rules)->name, "uid:2000");
}

TEST(UnixPeers, NobodyWithoutARole) {
    auto const stranger = local(user(2000, 100, {101}), {.uids = {}, .gids = {{50, Role::admin}}});
    ASSERT_FALSE(stranger);
    EXPECT_EQ(stranger.error().problem, Problem::forbidden);
    EXPECT_EQ(stranger.error().detail, "the user with uid 2000 has no role");
    EXPECT_THAT(stranger.error().remedy, HasSubstr("group vfmgr"));
}

TEST(OtherPeers, TcpNeedsATokenAndAGuestIsNobody) {
    auto const tcp = authenticate(http::TcpPeer{"127.0.0.1"}, {}, {}, Tokens{}, now);
    ASSERT_FALSE(tcp);
    EXPECT_EQ(tcp.error().problem, Problem::unauthorized);

    auto const made = make_token();
    auto const store = only(made, Role::admin);
    auto const guest = authenticate(http::VsockPeer{3, 1000}, bearer(made.secret), {}, store, now);
    ASSERT_FALSE(guest);
    EXPECT_EQ(guest.error().problem, Problem::forbidden);
}

TEST(Tokens, AreRandomAndKeptAsADigest) {
    std::set<std::string> secrets;
    for (int i = 0; i < 100; ++i) {
        auto const made = make_token();
        EXPECT_EQ(made.secret.size(), 4 + 64u);
        EXPECT_TRUE(made.secret.starts_with("vfm_"));
        EXPECT_EQ(made.id.size(), 8u);
        EXPECT_THAT(made.secret, Not(HasSubstr(made.id)));
        EXPECT_EQ(made.sha256, token_sha256(made.secret));
        secrets.insert(made.secret);
    }
    EXPECT_EQ(secrets.size(), 100u);
    // FIPS 180-2, B.1
    EXPECT_EQ(token_sha256("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Tokens, GiveTheirRoleOnAnySocket) {
    auto const made = make_token();
    auto const store = only(made, Role::viewer, now + std::chrono::seconds(1));
    auto const tcp = authenticate(http::TcpPeer{"10.0.0.1"}, bearer(made.secret), {}, store, now);
    ASSERT_TRUE(tcp) << tcp.error().detail;
    EXPECT_EQ(tcp->name, "token:" + made.id);
    EXPECT_EQ(tcp->role, Role::viewer);
    // Root with a viewer's token is a viewer.
    auto const unix_socket =
        authenticate(user(0, 0), {{"authorization", "bEARER " + made.secret}}, {}, store, now);
    ASSERT_TRUE(unix_socket);
    EXPECT_EQ(unix_socket->role, Role::viewer);
}

TEST(Tokens, ExpireAtTheSecond) {
    auto const made = make_token();
    auto const store = only(made, Role::admin, now);
    auto const late = authenticate(http::TcpPeer{"10.0.0.1"}, bearer(made.secret), {}, store, now);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::unauthorized);
    EXPECT_EQ(late.error().detail, "token " + made.id + " expired at " + to_rfc3339(now));
}

TEST(Tokens, AFormerSecretIsValidForItsTime) {
    auto const made = make_token();
    auto const former = make_token();
    Token token{made.id, made.sha256, "viewer", {}, {}, {}, {{"vms"}}};
    token.former = {former.sha256, now + std::chrono::seconds(1)};
    Tokens const store{{made.sha256, token}, {former.sha256, token}};
    auto const by = [&](NewToken const& secret, Time at) {
        return authenticate(http::TcpPeer{"10.0.0.1"}, bearer(secret.secret), {}, store, at);
    };
    EXPECT_EQ(by(former, now)->name, "token:" + made.id);
    EXPECT_EQ(by(former, now)->scopes, token.scopes);
    EXPECT_EQ(by(former, now)->token_sha256, former.sha256);
    auto const late = by(former, now + std::chrono::seconds(1));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::unauthorized);
    EXPECT_THAT(late.error().detail,
                HasSubstr("this secret of token " + made.id + " was replaced"));
    EXPECT_TRUE(by(made, now + std::chrono::seconds(1)));
}

TEST(Tokens, WrongOnesAreRefusedWithoutBeingRepeated) {
    auto const made = make_token();
    auto const store = only(made, Role::admin);
    auto wrong = made.secret;
    wrong.back() = wrong.back() == '0' ? '1' : '0';
    for (auto const& header :
         {"Bearer " + wrong, "Basic " + made.secret, made.secret, std::string("Bearer"),
          std::string(), "Bearer " + std::string(1000, 'a'), "Bearer  " + made.secret}) {
        // On the unix socket as well: a header, if present, decides.
        auto const answer = authenticate(user(0, 0), {{"authorization", header}}, {}, store, now);
        ASSERT_FALSE(answer) << header;
        EXPECT_EQ(answer.error().problem, Problem::unauthorized);
        EXPECT_THAT(answer.error().detail + answer.error().remedy, Not(HasSubstr("vfm_")));
    }
}

TEST(Tokens, OfARoleThatIsNotKnownAreRefused) {
    auto const made = make_token();
    auto store = only(made, Role::admin);
    store.begin()->second.role = "owner";
    auto const answer =
        authenticate(http::TcpPeer{"10.0.0.1"}, bearer(made.secret), {}, store, now);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().problem, Problem::unauthorized);
}

http::TcpPeer shows(std::vector<std::string> names, Time expires_at = now + std::chrono::hours(1)) {
    return {"10.0.0.1", http::PeerCertificate{std::move(names), expires_at}};
}

RoleRules const client_rules{.uids = {},
                             .gids = {},
                             .clients = {{"spiffe://fleet/a", Role::operator_},
                                         {"b.example", Role::operator_},
                                         {"c.example", Role::viewer}}};

Result<Principal> by_certificate(http::TcpPeer const& peer) {
    return authenticate(peer, {}, client_rules, Tokens{}, now);
}

TEST(Certificates, GiveTheRoleOfTheirName) {
    auto const client = by_certificate(shows({"spiffe://fleet/a"}));
    ASSERT_TRUE(client) << client.error().detail;
    EXPECT_EQ(client->name, "cert:spiffe://fleet/a");
    EXPECT_EQ(client->role, Role::operator_);
    // Other names without a role do not matter; of two with one role, the first is the principal.
    EXPECT_EQ(by_certificate(shows({"x", "b.example", "spiffe://fleet/a"}))->name,
              "cert:b.example");
}

TEST(Certificates, OnlyTheWholeNameCounts) {
    for (auto const* name :
         {"B.example", "b.example.", "a.b.example", "*.example", "b", "spiffe:"}) {
        auto const client = by_certificate(shows({name}));
        ASSERT_FALSE(client) << name;
        EXPECT_EQ(client.error().problem, Problem::forbidden);
        EXPECT_EQ(client.error().detail,
                  std::string("the client certificate of ") + name + " has no role");
        EXPECT_THAT(client.error().remedy,
                    HasSubstr("[tls.clients] \"" + std::string(name) + "\" = \"viewer\""));
    }
    EXPECT_EQ(by_certificate(shows({})).error().problem, Problem::forbidden);
}

TEST(Certificates, NamesWithDifferentRolesGiveNone) {
    for (auto const& names : {std::vector<std::string>{"b.example", "c.example"},
                              std::vector<std::string>{"c.example", "x", "b.example"}}) {
        auto const client = by_certificate(shows(names));
        ASSERT_FALSE(client);
        EXPECT_EQ(client.error().problem, Problem::forbidden);
        EXPECT_THAT(client.error().detail, HasSubstr("different roles"));
        EXPECT_THAT(client.error().detail, HasSubstr("b.example"));
        EXPECT_THAT(client.error().detail, HasSubstr("c.example"));
    }
}

TEST(Certificates, EndWhileTheirConnectionIsOpen) {
    auto const client = by_certificate(shows({"b.example"}, now));
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().problem, Problem::unauthorized);
    EXPECT_EQ(client.error().detail, "the client certificate expired at " + to_rfc3339(now));
}

TEST(Certificates, TheHeaderDecidesWhereBothAreShown) {
    auto const made = make_token();
    auto const store = only(made, Role::admin);
    auto const both =
        authenticate(shows({"c.example"}), bearer(made.secret), client_rules, store, now);
    ASSERT_TRUE(both);
    EXPECT_EQ(both->name, "token:" + made.id);
    EXPECT_EQ(both->role, Role::admin);
    auto const wrong =
        authenticate(shows({"c.example"}), bearer("vfm_0"), client_rules, store, now);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().problem, Problem::unauthorized);
}

Tenants const tenants{{"blue", {{"blue", {"uuid"}, {}, {}}, 3}}};

TEST(OfATenant, WhoIsOfOneThatDoesNotExistHasNoAccess) {
    auto const made = make_token();
    auto store = only(made, Role::operator_);
    store.begin()->second.tenant = "blue";
    auto const peer = http::TcpPeer{"10.0.0.1"};
    auto const who = authenticate(peer, bearer(made.secret), {}, store, now, tenants);
    ASSERT_TRUE(who) << who.error().detail;
    EXPECT_EQ(*who->tenant, tenants.at("blue"));
    auto const nobody = authenticate(peer, bearer(made.secret), {}, store, now);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().problem, Problem::forbidden);
    EXPECT_THAT(nobody.error().detail, HasSubstr("is of tenant blue, which does not exist"));
}

TEST(OfATenant, ACertificatesNamesAreOfOne) {
    RoleRules const rules{.uids = {},
                          .gids = {},
                          .clients = {{"a", {Role::operator_, "blue"}},
                                      {"b", {Role::operator_, "red"}},
                                      {"c", Role::operator_}}};
    auto const as = [&](std::vector<std::string> names) {
        return authenticate(shows(std::move(names)), {}, rules, Tokens{}, now, tenants);
    };
    EXPECT_EQ(as({"a"})->tenant->tenant.name, "blue");
    EXPECT_FALSE(as({"b"})) << "there is no tenant red";
    EXPECT_EQ(as({"c"})->tenant, nullptr);
    EXPECT_THAT(as({"a", "c"}).error().detail, HasSubstr("different tenants"));
}

TEST(OfATenant, HoldsWhileTheTenantMayDoTheSame) {
    auto const made = make_token();
    auto store = only(made, Role::operator_);
    store.begin()->second.tenant = "blue";
    auto const peer = http::TcpPeer{"10.0.0.1"};
    auto const who = authenticate(peer, bearer(made.secret), {}, store, now, tenants).value();
    EXPECT_TRUE(still_holds(who, peer, {}, store, now, tenants));
    auto changed = tenants;
    changed.at("blue").revision = 4;
    EXPECT_FALSE(still_holds(who, peer, {}, store, now, changed));
    EXPECT_FALSE(still_holds(who, peer, {}, store, now, {}));
}

TEST(StillHolds, WhileTheSameCredentialsGiveAsMuch) {
    RoleRules const before{.uids = {{7, Role::operator_}},
                           .gids = {},
                           .clients = {{"a", Role::operator_}, {"b", Role::operator_}}};
    auto const named = shows({"a", "b"});
    Principal const by_uid{"uid:7", Role::operator_};
    Principal const by_name{"cert:a", Role::operator_};
    auto rules = before;
    auto const uid_holds = [&] { return still_holds(by_uid, user(7, 1), rules, {}, now); };
    auto const name_holds = [&] { return still_holds(by_name, named, rules, {}, now); };
    EXPECT_TRUE(uid_holds());
    EXPECT_TRUE(name_holds());
    rules.clients["a"] = rules.clients["b"] = rules.uids[7] = Role::admin;
    EXPECT_TRUE(uid_holds()) << "more is no less";
    EXPECT_TRUE(name_holds());
    rules.clients["a"] = rules.uids[7] = Role::viewer;
    EXPECT_FALSE(uid_holds());
    EXPECT_FALSE(name_holds());
    rules = {.uids = {}, .gids = {{1, Role::operator_}}, .clients = {{"b", Role::operator_}}};
    EXPECT_TRUE(uid_holds()) << "by its group now";
    EXPECT_FALSE(name_holds()) << "it is somebody else now";
    EXPECT_FALSE(still_holds(by_name, shows({"a"}, now), before, {}, now)) << "expired";
}

TEST(StillHolds, WhileItsTokenDoes) {
    auto const made = make_token();
    auto store = only(made, Role::operator_, now + std::chrono::seconds(1));
    Principal const who{"token:" + made.id, Role::operator_, {}, made.sha256};
    http::TcpPeer const peer{"10.0.0.1"};
    EXPECT_TRUE(still_holds(who, peer, {}, store, now));
    EXPECT_FALSE(still_holds(who, peer, {}, store, now + std::chrono::seconds(1)));
    EXPECT_FALSE(still_holds(who, peer, {}, Tokens{}, now)) << "revoked";
    auto const next = make_token();
    EXPECT_FALSE(still_holds(who, peer, {}, only(next, Role::operator_), now)) << "replaced";
    // With root's credentials beside it: the token was what counted.
    EXPECT_FALSE(still_holds(who, user(0, 0), {}, Tokens{}, now));
}

TEST(ResolveRoles, NamesGroupsThatAreNotThere) {
    auto const resolved = resolve_roles({{"root", Role::viewer}, {"no-such-group", Role::admin}},
                                        {{1000, Role::operator_}});
    EXPECT_THAT(resolved.unknown_groups, ElementsAre("no-such-group"));
    EXPECT_EQ(resolved.rules.gids, (std::map<std::uint32_t, Role>{{0, Role::viewer}}));
    EXPECT_EQ(resolved.rules.uids, (std::map<std::uint32_t, Role>{{1000, Role::operator_}}));
}

}  // namespace
}  // namespace vfmgr
