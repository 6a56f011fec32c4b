// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/moves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/service/fleet/identities/fleet_snapshot.hpp"

namespace vfmgr::fleet {
namespace {

using testing::HasSubstr;

Identity const one = test::mac("52:54:00:00:00:41");
MoveTarget const to_b{"b", "key of b", "vm"};

Snapshot fleet_of_a() {
    Snapshot fleet;
    test::add_block(fleet, test::mac("52:54:00:00:00:40"), test::mac("52:54:00:00:00:7f"), "a");
    return fleet;
}

void performed(Snapshot& fleet, Result<Transition> const& transition) {
    ASSERT_TRUE(transition) << transition.error().detail;
    ASSERT_TRUE(test::commit(fleet, *transition));
}

TEST(Moves, GoFromOwnerToOwner) {
    auto fleet = fleet_of_a();
    EXPECT_EQ(owner_of(fleet, one), "a");
    performed(fleet, begin_move(fleet, one, to_b, {"act1", {}}));
    EXPECT_EQ(owner_of(fleet, one), "");
    performed(fleet, note_given_up(fleet, one, Acknowledged{"a", fleet.revision}, {"act2", {}}));
    EXPECT_EQ(owner_of(fleet, one), "");
    performed(fleet, claim_it(fleet, one, {"act3", {}}));
    EXPECT_EQ(owner_of(fleet, one), "b");
    auto const& claim = claim_of(fleet, one)->claim;
    EXPECT_EQ(claim.act, "act3");
    EXPECT_EQ(claim.public_key, "key of b");
    EXPECT_EQ(claim.from_public_key, "key of a");
}

TEST(Moves, EndWithoutAClaimAtHome) {
    auto fleet = fleet_of_a();
    fleet.claims.push_back({{one, ClaimState::held, "b", "a", "vm", "", {}, "key of b", ""}, 9});
    fleet.revision = 9;
    performed(fleet, begin_move(fleet, one, {"a", "key of a", "vm"}, {}));
    performed(fleet, note_given_up(fleet, one, Acknowledged{"b", fleet.revision}, {}));
    performed(fleet, claim_it(fleet, one, {}));
    EXPECT_EQ(owner_of(fleet, one), "a");
    EXPECT_TRUE(fleet.claims.empty());
}

TEST(Moves, CompareWhatTheyWereDecidedFrom) {
    auto fleet = fleet_of_a();
    auto const begun = begin_move(fleet, one, to_b, {"act1", {}}).value();
    EXPECT_EQ(begun.compares,
              (std::vector<KeyCompare>{{"claims/mac/52:54:00:00:00:41", std::nullopt},
                                       {"blocks/mac/52:54:00:00:00:40", 1}}));
    ASSERT_EQ(begun.writes.size(), 1U);
    EXPECT_EQ(begun.writes[0].claim->state, ClaimState::giving_up);
    auto const stale = fleet;
    performed(fleet, begun);
    EXPECT_FALSE(test::commit(fleet, begun)) << "a second time";
    EXPECT_FALSE(test::commit(fleet, begin_move(stale, one, {"c", "", ""}, {}).value()));
    auto const fenced = note_given_up(fleet, one, FencedHost{"a", 7}, {}).value();
    EXPECT_EQ(fenced.compares.back(), (KeyCompare{"hosts/a", 7})) << "the fence still stands";
}

TEST(Moves, RefuseWhatIsNotTheirTurn) {
    auto fleet = fleet_of_a();
    auto const refused = [](Result<Transition> const& result, char const* why) {
        ASSERT_FALSE(result);
        EXPECT_THAT(result.error().detail, HasSubstr(why));
        EXPECT_FALSE(result.error().remedy.empty());
    };
    refused(begin_move(fleet, test::mac("52:54:00:00:00:01"), to_b, {}), "is in no host's block");
    refused(begin_move(fleet, one, {"a", "", ""}, {}), "is a's already");
    refused(claim_it(fleet, one, {}), "is not on its way");
    performed(fleet, begin_move(fleet, one, to_b, {}));
    refused(begin_move(fleet, one, {"c", "", ""}, {}), "is on its way from a to b already");
    refused(claim_it(fleet, one, {}), "is giving_up on the way to b, not given_up");
    refused(note_given_up(fleet, one, Acknowledged{"b", 99}, {}), "is a's to give up, not b's");
    auto const early = note_given_up(fleet, one, Acknowledged{"a", fleet.revision - 1}, {});
    refused(early, "a acknowledged generation 1");
    EXPECT_EQ(early.error().problem, Problem::unavailable);
}

TEST(Moves, AreAbortedUntilTheTargetHasIt) {
    auto fleet = fleet_of_a();
    EXPECT_EQ(abort_move(fleet, one, {}).outcome, AbortOutcome::nothing);
    performed(fleet, begin_move(fleet, one, to_b, {}));
    auto at_begin = fleet;
    ASSERT_TRUE(test::commit(at_begin, *abort_move(at_begin, one, {}).transition));
    EXPECT_EQ(owner_of(at_begin, one), "a");
    performed(fleet, note_given_up(fleet, one, Acknowledged{"a", fleet.revision}, {}));
    auto given_up = fleet;
    auto const late_claim = claim_it(given_up, one, {}).value();
    ASSERT_TRUE(test::commit(given_up, *abort_move(given_up, one, {}).transition));
    EXPECT_EQ(owner_of(given_up, one), "a");
    EXPECT_FALSE(test::commit(given_up, late_claim)) << "decided before the abort";
    performed(fleet, claim_it(fleet, one, {}));
    EXPECT_EQ(abort_move(fleet, one, {}).outcome, AbortOutcome::move_there);
}

TEST(Moves, RestoreAnEarlierClaim) {
    auto fleet = fleet_of_a();
    fleet.claims.push_back(
        {{one, ClaimState::held, "b", "a", "vm", "", {}, "key of b", "key of a"}, 9});
    fleet.revision = 9;
    performed(fleet, begin_move(fleet, one, {"c", "key of c", "vm"}, {}));
    auto const aborted = abort_move(fleet, one, {"act", {}});
    ASSERT_EQ(aborted.outcome, AbortOutcome::back);
    ASSERT_TRUE(test::commit(fleet, *aborted.transition));
    EXPECT_EQ(owner_of(fleet, one), "b");
    EXPECT_EQ(claim_of(fleet, one)->claim.public_key, "key of b");
}

}  // namespace
}  // namespace vfmgr::fleet
