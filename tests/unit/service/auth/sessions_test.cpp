// SPDX-License-Identifier: Apache-2.0
// What a session is worth, and when it ends.
#include "service/auth/sessions.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

struct SessionsTest : testing::Test {
    static constexpr Time now = Time{} + hours(24 * 365 * 50);
    static http::TcpPeer showing(std::string name, Time expires_at = now + hours(24)) {
        return {"10.0.0.1", http::PeerCertificate{{std::move(name)}, expires_at}};
    }
    NewToken const made = make_token();
    std::map<std::string, Token> tokens{
        {made.sha256, {made.id, made.sha256, "operator", {}, {}, {}, {{"vms"}}}}};
    RoleRules const rules{.uids = {}, .gids = {}, .clients = {{"a", Role::operator_}}};
    http::Peer const bare = http::TcpPeer{"10.0.0.1"};
    Sessions sessions;

    [[nodiscard]] Result<Principal> by(std::string const& secret, http::Peer const& peer,
                                       Time at = now) const {
        return authenticate(peer, {{"authorization", "Bearer " + secret}}, rules, tokens, at, {},
                            *sessions.get());
    }
    [[nodiscard]] bool holds(Principal const& who, http::Peer const& peer, Time at = now) const {
        return still_holds(who, peer, rules, tokens, at, {}, *sessions.get());
    }
    Result<std::string> begin(Principal const& who, http::Peer const& peer, Time at = now) {
        VFMGR_TRY(auto session, session_of(who, peer, tokens, at));
        return sessions.begin(std::move(session), tokens, at);
    }
    std::string begun_by_token() { return begin(by(made.secret, bare).value(), bare).value(); }
    std::string begun_by_certificate() {
        return begin(authenticate(showing("a"), {}, rules, tokens, now).value(), showing("a"))
            .value();
    }
};

TEST_F(SessionsTest, OneIsWhoBeganIt) {
    auto const secret = begun_by_token();
    EXPECT_NE(secret, made.secret);
    auto const who = by(secret, bare);
    ASSERT_TRUE(who) << who.error().detail;
    EXPECT_EQ(who->name, "token:" + made.id);
    EXPECT_EQ(who->role, Role::operator_);
    EXPECT_EQ(who->scopes, (std::vector<std::string>{"vms"}));
    EXPECT_EQ(who->session_sha256, token_sha256(secret));
    EXPECT_TRUE(holds(*who, bare));
    auto const named = by(begun_by_certificate(), showing("a"));
    ASSERT_TRUE(named) << named.error().detail;
    EXPECT_EQ(named->name, "cert:a");
    EXPECT_EQ(named->role, Role::operator_);
}

TEST_F(SessionsTest, OneEndsAfterEightHoursOrWithWhatBeganIt) {
    auto const end_of = [&](http::Peer const& peer) {
        auto const who = peer.index() == bare.index() && !std::get<http::TcpPeer>(peer).certificate
                             ? by(made.secret, peer)
                             : authenticate(peer, {}, rules, tokens, now);
        return session_of(who.value(), peer, tokens, now).value().expires_at;
    };
    EXPECT_EQ(end_of(bare), now + hours(8));
    EXPECT_EQ(end_of(showing("a")), now + hours(8));
    EXPECT_EQ(end_of(showing("a", now + hours(7))), now + hours(7));
    tokens.begin()->second.expires_at = now + hours(6);
    EXPECT_EQ(end_of(bare), now + hours(6));
    tokens.begin()->second.former = {made.sha256, now + hours(5)};
    EXPECT_EQ(end_of(bare), now + hours(5));
    auto const secret = begun_by_token();
    auto const who = by(secret, bare, now + hours(5) - seconds(1));
    ASSERT_TRUE(who);
    EXPECT_FALSE(holds(*who, bare, now + hours(5)));
    EXPECT_THAT(by(secret, bare, now + hours(5)).error().detail, HasSubstr("ended at"));
}

TEST_F(SessionsTest, OneEndsWhenItsTokenIsRevokedOrItsCertificateLosesTheRole) {
    auto const of_token = begun_by_token();
    auto const of_certificate = begun_by_certificate();
    auto const who = by(of_token, bare).value();
    tokens.clear();
    EXPECT_FALSE(holds(who, bare));
    auto const revoked = by(of_token, bare);
    ASSERT_FALSE(revoked);
    EXPECT_EQ(revoked.error().problem, Problem::unauthorized);
    EXPECT_THAT(revoked.error().detail, HasSubstr("has been revoked"));
    EXPECT_FALSE(authenticate(showing("a"), {{"authorization", "Bearer " + of_certificate}}, {},
                              tokens, now, {}, *sessions.get()));
}

// A certificate that is revoked ends in the handshake; without it the session is worth nothing.
TEST_F(SessionsTest, OneOfACertificateNeedsThatCertificate) {
    auto const secret = begun_by_certificate();
    EXPECT_TRUE(by(secret, showing("a")));
    EXPECT_FALSE(by(secret, bare));
    EXPECT_FALSE(by(secret, showing("b")));
    EXPECT_FALSE(by(secret, http::UnixPeer{}));
}

TEST_F(SessionsTest, NeitherASessionNorAUserBeginsOne) {
    auto const session = by(begun_by_token(), bare).value();
    auto const another = begin(session, bare);
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().problem, Problem::forbidden);
    auto const root = begin({"uid:0", Role::admin}, http::UnixPeer{});
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().problem, Problem::forbidden);
}

TEST_F(SessionsTest, OneThatIsEndedIsToldApartFromNone) {
    int ended = 0;
    sessions.on_end([&] { ++ended; });
    auto const secret = begun_by_token();
    auto const who = by(secret, bare).value();
    EXPECT_EQ(ended, 0);
    sessions.end(who.session_sha256);
    EXPECT_EQ(ended, 1);
    EXPECT_FALSE(holds(who, bare));
    EXPECT_FALSE(by(secret, bare));
    EXPECT_TRUE(by(made.secret, bare)) << "the token is as it was";
}

TEST_F(SessionsTest, APrincipalsOldestMakesRoom) {
    std::vector<std::string> secrets;
    int ended = 0;
    sessions.on_end([&] { ++ended; });
    auto const other = begun_by_certificate();
    for (std::size_t i = 0; i <= sessions_each_max; ++i) secrets.push_back(begun_by_token());
    EXPECT_EQ(ended, 1);
    EXPECT_FALSE(by(secrets[0], bare));
    EXPECT_TRUE(by(secrets[1], bare));
    EXPECT_TRUE(by(secrets.back(), bare));
    EXPECT_TRUE(by(other, showing("a"))) << "it takes nothing from others";
}

TEST_F(SessionsTest, ThereAreSoManyAndThoseThatAreOverAreForgotten) {
    auto const fill = [&](std::size_t from, Time at) {
        Result<std::string> last = std::string();
        for (std::size_t i = 0; last && i < sessions_max; ++i)
            last = sessions.begin({std::to_string(from + i), {}, at + hours(1)}, tokens, at);
        return last;
    };
    ASSERT_TRUE(fill(0, now));
    auto const refused = begin(by(made.secret, bare).value(), bare);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr("all 1024 sessions"));
    EXPECT_TRUE(fill(sessions_max, now + hours(1)));
    EXPECT_EQ(sessions.get()->size(), sessions_max);
}

}  // namespace
}  // namespace vfmgr
