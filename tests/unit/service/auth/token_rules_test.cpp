// SPDX-License-Identifier: Apache-2.0
#include "service/auth/token_rules.hpp"

#include <gmock/gmock.h>

#include "service/auth/token_uses.hpp"

namespace vfmgr {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr hours day{24};
constexpr Time present = Time{} + day * 365 * 50;

TEST(Expiry, IsNinetyDaysUnlessSomethingElseIsWanted) {
    EXPECT_EQ(expiry_of({}, present).value(), present + day * 90);
    EXPECT_EQ(expiry_of({.days = 3}, present).value(), present + day * 3);
    EXPECT_EQ(expiry_of({.expires_in_seconds = 60}, present).value(), present + seconds(60));
    EXPECT_EQ(expiry_of({.expires_at = present + day}, present).value(), present + day);
    EXPECT_EQ(expiry_of({.never_expires = true}, present).value(), std::nullopt);
}

TEST(Expiry, IsInTheFutureAndNotTooFar) {
    for (auto const at : {present, present - day, present + day * 3651}) {
        auto const expiry = expiry_of({.expires_at = at}, present);
        ASSERT_FALSE(expiry);
        EXPECT_EQ(expiry.error().problem, Problem::invalid_request);
        EXPECT_THAT(expiry.error().violations,
                    ElementsAre(testing::Field(&Violation::pointer, "/expires_at")));
    }
}

TEST(Scopes, AreNounsOfTheApiEachOnce) {
    std::vector<std::string> const nouns{"attachments", "vms"};
    EXPECT_TRUE(check_scopes({}, nouns));
    EXPECT_TRUE(check_scopes({{"vms", "attachments"}}, nouns));
    auto const refused = check_scopes({{"vms", "atachments", "vms"}}, nouns);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().violations,
                ElementsAre(Violation{"/scopes/0", "is there twice"},
                            Violation{"/scopes/1", "is no noun of this API"},
                            Violation{"/scopes/2", "is there twice"}));
    EXPECT_THAT(refused.error().remedy, HasSubstr("attachments, vms"));
}

TEST(Scopes, ExternalHoldersAreAPermissionOfTheirOwn) {
    EXPECT_TRUE(check_scopes({{"vms", external_holders_scope}}, {"vms"}));
    EXPECT_TRUE(may_name_holders({"uid:0", Role::admin}));
    EXPECT_TRUE(may_name_holders({"token:a", Role::operator_, {{"x", external_holders_scope}}}));
    for (Principal const& other :
         {Principal{"uid:1", Role::operator_}, Principal{"token:a", Role::admin, {{"attachments"}}},
          Principal{"token:b", Role::operator_, {{"attachments"}}}}) {
        auto const refused = may_name_holders(other);
        ASSERT_FALSE(refused) << other.name;
        EXPECT_EQ(refused.error().problem, Problem::forbidden);
        EXPECT_THAT(refused.error().remedy, HasSubstr(external_holders_scope));
    }
}

TEST(Scopes, AnAdoptionIsAnAttachmentToo) {
    EXPECT_TRUE(may_adopt({"uid:1", Role::operator_}));
    EXPECT_TRUE(may_adopt({"token:a", Role::operator_, {{"vms", "attachments"}}}));
    auto const refused = may_adopt({"token:a", Role::admin, {{"vms"}}});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().remedy, HasSubstr("attachments"));
}

TEST(Scopes, ATokenHandsOutNoMoreThanItHas) {
    Principal const all{"uid:0", Role::admin};
    EXPECT_TRUE(may_hand_out(all, {}));
    Principal const some{"token:a", Role::admin, {{"tokens", "vms"}}};
    EXPECT_TRUE(may_hand_out(some, {{"vms"}}));
    for (Scopes const& wanted : {Scopes(), Scopes({"vms", "pfs"})}) {
        auto const refused = may_hand_out(some, wanted);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::forbidden);
        EXPECT_THAT(refused.error().detail, HasSubstr("token:a has the scopes tokens, vms alone"));
    }
}

Token const token{"id", "old", "admin", "", present - day * 80, present + day * 10, {{"vms"}}};

TEST(Rotation, ChangesTheSecretAndKeepsTheRest) {
    auto const next = rotated(token, "new", present, seconds(0));
    EXPECT_EQ(next.sha256, "new");
    EXPECT_EQ(next.former, std::nullopt);
    EXPECT_EQ(next.rotated_at, present);
    EXPECT_EQ(next.expires_at, present + day * 90) << "as long as it was to last before";
    EXPECT_EQ(next.scopes, token.scopes);
    // And from the last secret on, when there is another.
    EXPECT_EQ(rotated(next, "third", present + day, seconds(0)).expires_at, present + day * 91);
    auto eternal = token;
    eternal.expires_at = {};
    EXPECT_EQ(rotated(eternal, "new", present, seconds(0)).expires_at, std::nullopt);
}

TEST(Rotation, GraceEndsWithTheOldSecretAtTheLatest) {
    auto const next = rotated(token, "new", present, seconds(3600));
    EXPECT_EQ(next.former, (Token::Former{"old", present + hours(1)}));
    EXPECT_EQ(rotated(next, "third", present, seconds(60)).former,
              (Token::Former{"new", present + seconds(60)}))
        << "of secrets before, only the last";
    auto ending = token;
    ending.expires_at = present + seconds(5);
    EXPECT_EQ(rotated(ending, "new", present, seconds(3600)).former->until, present + seconds(5));
    ending.expires_at = present;
    EXPECT_EQ(rotated(ending, "new", present, seconds(3600)).former, std::nullopt)
        << "it has ended";
}

TEST(EndsSoon, IsSaidOfTokensInUse) {
    auto one = token;
    one.expires_at = present + day * 7;
    EXPECT_FALSE(ends_soon(one, present)) << "never used";
    one.last_use = {present - day * 29, "uid:0"};
    EXPECT_TRUE(ends_soon(one, present));
    one.last_use = {present - day * 30, "uid:0"};
    EXPECT_FALSE(ends_soon(one, present)) << "no longer used";
    one.last_use = {present, "uid:0"};
    one.expires_at = present + day * 7 + seconds(1);
    EXPECT_FALSE(ends_soon(one, present));
    one.expires_at = present;
    EXPECT_FALSE(ends_soon(one, present)) << "it has ended";
    one.expires_at = {};
    EXPECT_FALSE(ends_soon(one, present));
}

TEST(Uses, AreKnownAtOnceAndWrittenOnceAnHour) {
    TokenUses uses;
    EXPECT_THAT(uses.take_unwritten(present), IsEmpty());
    TokenUse const first{present, "address:10.0.0.9"};
    uses.note(token, first);
    EXPECT_EQ(uses.with_last_use(token).last_use, first);
    EXPECT_THAT(uses.take_unwritten(present), ElementsAre(Pair("id", first)));
    EXPECT_THAT(uses.take_unwritten(present + hours(2)), IsEmpty()) << "it is written";
    TokenUse const second{present + seconds(1), "uid:7"};
    uses.note(token, second);
    EXPECT_EQ(uses.with_last_use(token).last_use, second);
    EXPECT_THAT(uses.take_unwritten(present + hours(1) - seconds(1)), IsEmpty());
    EXPECT_THAT(uses.take_unwritten(present + hours(1)), ElementsAre(Pair("id", second)));
    uses.note(token, {present + hours(1), "uid:7"});
    EXPECT_EQ(uses.take_unwritten(Time::max()).size(), 1U) << "before the daemon ends";
}

// A daemon that restarts every minute still writes once an hour.
TEST(Uses, WhatTheStoreHasCounts) {
    TokenUses uses;
    auto stored = token;
    stored.last_use = {present - seconds(60), "uid:7"};
    EXPECT_EQ(uses.with_last_use(stored).last_use, stored.last_use);
    uses.note(stored, {present, "uid:7"});
    EXPECT_THAT(uses.take_unwritten(present), IsEmpty());
    EXPECT_EQ(uses.take_unwritten(present - seconds(60) + hours(1)).size(), 1U);
}

}  // namespace
}  // namespace vfmgr
