// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/drain/drain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/types/json.hpp"
#include "tests/unit/service/fleet/drain/move_world.hpp"

namespace vfmgr::fleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Drain drain_of_a() {
    Drain drain;
    drain.id = "00000001";
    drain.host = "a";
    drain.reason = "new firmware";
    return drain;
}
Move move_of(std::string const& attachment, MoveStage stage) {
    auto move = test::planned(true);
    move.source.attachment = attachment;
    move.stage = stage;
    return move;
}
Standing standing(std::string const& attachment, OnDrain on_drain) {
    return {attachment, "vm" + attachment, on_drain};
}

TEST(Drain, CordonsFirst) {
    auto drain = observed(drain_of_a(), {}, "");
    EXPECT_EQ(drain.state, DrainState::cordoning) << "attachments may begin until it is cordoned";
    EXPECT_THAT(asks_of(drain), ElementsAre(DrainAsk{CordonAsk{true}}));
    drain = cordon_written(drain, "act");
    EXPECT_THAT(asks_of(drain), IsEmpty());
    EXPECT_EQ(observed(drain, {}, "").state, DrainState::drained);
}

TEST(Drain, MovesOrNamesEachAttachment) {
    auto drain = observed(cordon_written(drain_of_a(), ""),
                          {standing("1", OnDrain::name), standing("2", OnDrain::move)}, "");
    EXPECT_THAT(asks_of(drain), ElementsAre(DrainAsk{NameAsk{"1"}}, DrainAsk{StartMove{"2"}}));
    EXPECT_THAT(sentences_of(drain), Contains(HasSubstr("all their queue pairs die")));
    drain = named(drain, "1", "");
    drain = started(drain, move_of("2", MoveStage::holding), "");
    EXPECT_THAT(asks_of(drain), IsEmpty());
    drain = observed(drain, {standing("1", OnDrain::name)}, "");
    EXPECT_EQ(drain.items[1].state, DrainItemState::moving) << "it is not proved there yet";
    auto ended = move_of("", MoveStage::done);
    drain = moved(drain, ended, "");
    drain = observed(drain, {}, "act2");
    EXPECT_EQ(drain.state, DrainState::drained);
    EXPECT_EQ(drain.act, "act2");
    EXPECT_THAT(sentences_of(drain), ElementsAre("a has no attachments, and stays cordoned"));
    drain = observed(drain, {standing("3", OnDrain::name)}, "");
    EXPECT_EQ(drain.state, DrainState::emptying) << "somebody attached past the fleet";
}

TEST(Drain, MovesSomeAtATime) {
    std::vector<Standing> all;
    for (int i = 0; i < 9; ++i) all.push_back(standing(std::to_string(i), OnDrain::move));
    auto drain = observed(cordon_written(drain_of_a(), ""), all, "");
    EXPECT_EQ(asks_of(drain).size(), moves_at_once);
    drain = started(drain, move_of("0", MoveStage::holding), "");
    EXPECT_EQ(asks_of(drain).size(), moves_at_once - 1);
}

TEST(Drain, SaysWhatStaysAndTriesAgain) {
    auto drain = observed(cordon_written(drain_of_a(), ""),
                          {standing("1", OnDrain::move), standing("2", OnDrain::move)}, "");
    EXPECT_EQ(tried_again(drain, "").error().problem, Problem::conflict);
    drain = started(drain, move_of("1", MoveStage::holding), "");
    auto returned = move_of("feeda001", MoveStage::returned);
    returned.marks.push_back({MoveStage::releasing, {}, "the guest holds it"});
    drain = moved(drain, returned, "");
    drain = not_started(drain, "2", {Problem::limit_exceeded, "none of 3 hosts suits", ""}, "");
    EXPECT_THAT(
        sentences_of(drain),
        ElementsAre("attachment feeda001 of VM vm1 stays: move 89abcdef returned: the guest "
                    "holds it",
                    "attachment 2 of VM vm2 stays: none of 3 hosts suits"));
    drain =
        observed(drain, {standing("feeda001", OnDrain::move), standing("2", OnDrain::move)}, "");
    EXPECT_EQ(drain.items.size(), 2U) << "the way back attached it anew";
    EXPECT_EQ(drain.state, DrainState::emptying);
    drain = tried_again(drain, "").value();
    EXPECT_EQ(asks_of(drain).size(), 2U);
}

TEST(Drain, NamesTheResidueOfAFailedMove) {
    auto drain = observed(cordon_written(drain_of_a(), ""), {standing("1", OnDrain::move)}, "");
    drain = started(drain, move_of("1", MoveStage::holding), "");
    auto failed = move_of("", MoveStage::failed);
    failed.residue = {"VM vm1 is on b", "VM vm1 has no VF for rail 3"};
    drain = moved(drain, failed, "");
    EXPECT_THAT(drain.items[0].detail, HasSubstr("VM vm1 is on b; VM vm1 has no VF for rail 3"));
}

TEST(Drain, IsCancelledWhileItGoesOn) {
    auto drain = cancelled(cordon_written(drain_of_a(), ""), "").value();
    EXPECT_THAT(asks_of(drain), ElementsAre(DrainAsk{CordonAsk{false}}));
    EXPECT_FALSE(cancelled(drain, ""));
    EXPECT_FALSE(tried_again(drain, ""));
    EXPECT_EQ(observed(drain, {}, "").state, DrainState::cancelling);
    drain = cordon_written(drain, "");
    EXPECT_EQ(drain.state, DrainState::cancelled);
    EXPECT_THAT(asks_of(drain), IsEmpty()) << "an admin may cordon it again";
    auto before = drain_of_a();
    before.was_cordoned = true;
    EXPECT_THAT(asks_of(cancelled(before, "").value()), IsEmpty()) << "as it was before";
}

TEST(Drain, IsReadAsItIsWritten) {
    auto drain =
        observed(cordon_written(drain_of_a(), "act"), {standing("1", OnDrain::move)}, "act2");
    auto const read = from_json_text<Drain>(to_json_text(nlohmann::json(drain)));
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, drain);
}

}  // namespace
}  // namespace vfmgr::fleet
