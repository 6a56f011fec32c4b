// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/drain/move.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/types/json.hpp"
#include "tests/unit/service/fleet/drain/move_world.hpp"

namespace vfmgr::fleet {
namespace {

using test::MoveWorld;
using test::planned;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Move begin(bool running) {
    return begun(planned(running), {});
}

Move step(Move const& move, MoveWorld& world) {
    return after(move, world.perform(*ask_of(move)), {});
}

// Up to that stage, without trouble.
Move at_stage(MoveStage stage, MoveWorld& world) {
    auto move = begin(true);
    while (move.stage != stage && ask_of(move)) move = step(move, world);
    return move;
}

std::vector<MoveStage> stages_of(Move const& move) {
    std::vector<MoveStage> stages;
    for (auto const& mark : move.marks) stages.push_back(mark.stage);
    return stages;
}

TEST(Move, GoesFromHostToHost) {
    MoveWorld world;
    auto const move = at_stage(MoveStage::done, world);
    using enum MoveStage;
    EXPECT_EQ(stages_of(move), (std::vector{holding, detaching, keeping, giving_up, claiming,
                                            migrating, attaching, proving, dropping, done}));
    EXPECT_EQ(world.vm_on, "b");
    EXPECT_TRUE(world.proved["b"]);
    EXPECT_EQ(move.target.attachment, world.attached["b"]);
    EXPECT_THAT(move.residue, IsEmpty());
}

TEST(Move, OfAStoppedVmProvesNothing) {
    MoveWorld world;
    auto move = begin(false);
    while (ask_of(move)) move = step(move, world);
    EXPECT_EQ(move.stage, MoveStage::done);
    EXPECT_THAT(stages_of(move), testing::Not(Contains(MoveStage::proving)));
    EXPECT_THAT(sentences_of(move), Each(testing::Not(HasSubstr("queue pairs"))));
}

TEST(Move, AsksBothHostsForTheSameIdentities) {
    MoveWorld world;
    auto move = begin(true);
    EXPECT_EQ(std::get<HostCall>(*ask_of(move)),
              (HostCall{"b", "PUT", "/v1/reservations/move-89abcdef",
                        R"({"count":1,"distinct_pfs":false,"network":"train",)"
                        R"("pfs":[{"count":1,"pf":"0000:09:00.0"}],"seconds":86400})"}));
    move = at_stage(MoveStage::attaching, world);
    auto const call = std::get<HostCall>(*ask_of(move));
    EXPECT_EQ(call.host, "b");
    EXPECT_EQ(call.idempotency_key, "move-89abcdef-attach-1");
    auto const spec = from_json_text<AttachmentSpec>(call.body);
    ASSERT_TRUE(spec) << spec.error().detail;
    EXPECT_EQ(spec->vm, test::attachment_of_vm().vm_uuid);
    EXPECT_EQ(spec->settings.mac, test::attachment_of_vm().settings.mac);
    EXPECT_EQ(spec->settings.vlan, std::nullopt) << "the network's, of that host";
    EXPECT_EQ(spec->address, test::attachment_of_vm().address);
    EXPECT_EQ(spec->reservation, "move-89abcdef");
    EXPECT_EQ(to_string(*spec->pf), "0000:09:00.0");
}

TEST(Move, IsRefusedForWhatCanNotMove) {
    auto attachment = test::attachment_of_vm();
    MoveOrder order{.id = "89abcdef",
                    .drain = "",
                    .source = "a",
                    .target = "a",
                    .target_pf = {},
                    .rail = "3",
                    .running = true,
                    .requested_by = ""};
    EXPECT_EQ(planned_move(attachment, order).error().problem, Problem::conflict);
    order.target = "b";
    attachment.state = AttachmentState::detaching;
    EXPECT_EQ(planned_move(attachment, order).error().problem, Problem::conflict);
    attachment.state = AttachmentState::attached;
    attachment.holder = ExternalHolder{.name = "qm-104"};
    EXPECT_EQ(planned_move(attachment, order).error().problem, Problem::unsupported);
}

TEST(Move, SaysThatQueuePairsDie) {
    auto const plan = sentences_of(planned(true));
    EXPECT_THAT(plan.at(0), HasSubstr("all queue pairs of VM vm1 over attachment 0123abcd die"));
    EXPECT_THAT(plan, Contains(HasSubstr("MAC 52:54:00:00:00:01, address 10.0.0.17")));
}

enum class Trouble { refusal, lost_request, lost_answer, crash, abort, abort_and_refusal };

// Everything but the trouble succeeds.
Move with_trouble(Move move, std::size_t at, Trouble trouble, MoveWorld& world) {
    for (std::size_t asked = 0; ask_of(move) && asked < 100; ++asked) {
        auto const ask = *ask_of(move);
        if (asked != at) {
            move = after(move, world.perform(ask), {});
            continue;
        }
        switch (trouble) {
            case Trouble::refusal:
                move = after(move, world.refused(move), {});
                break;
            case Trouble::lost_request:
                move = after(move, {Outcome::unknown}, {});
                break;
            case Trouble::lost_answer:
                (void)world.perform(ask);
                move = after(move, {Outcome::unknown}, {});
                break;
            case Trouble::crash:  // the next leader has only what was written before
                (void)world.perform(ask);
                move = from_json_text<Move>(to_json_text(nlohmann::json(move))).value();
                break;
            case Trouble::abort:
                if (auto back = turned_back(move, "no time", {})) move = *back;
                break;
            case Trouble::abort_and_refusal:
                if (auto back = turned_back(move, "no time", {})) move = *back;
                if (ask_of(move)) move = after(move, world.refused(move), {});
                break;
        }
    }
    return move;
}

void expect_an_end(Move const& move, MoveWorld& world, bool running) {
    ASSERT_TRUE(has_ended(move)) << static_cast<int>(move.stage);
    EXPECT_EQ(move.vm_at_target, world.vm_on == "b");
    EXPECT_EQ(move.source.attachment.empty(), !world.attached.contains("a"));
    EXPECT_EQ(move.target.attachment.empty(), !world.attached.contains("b"));
    for (auto const* const end : {&move.source, &move.target})
        EXPECT_TRUE(end->vf_kept || !world.kept[end->host]) << "a kept VF that nobody knows of";
    if (move.stage == MoveStage::failed) {
        EXPECT_THAT(move.residue, testing::Not(IsEmpty()));
        EXPECT_TRUE(move.failed_at);
        return;
    }
    auto const* const host = move.stage == MoveStage::done ? "b" : "a";
    EXPECT_EQ(world.vm_on, host);
    ASSERT_EQ(world.attached.size(), 1U);
    EXPECT_TRUE(world.attached.contains(host));
    EXPECT_EQ(world.identities,
              move.stage == MoveStage::done ? IdentitiesAt::target : IdentitiesAt::source);
    EXPECT_EQ(move.identities_at, world.identities);
    bool const never_left = world.attached[host] == "0123abcd";
    if (running && !never_left) EXPECT_TRUE(world.proved[host]);
}

std::size_t asks_without_trouble(bool running) {
    MoveWorld world;
    auto move = begin(running);
    std::size_t count = 0;
    for (; ask_of(move); ++count) move = step(move, world);
    return count;
}

TEST(Move, EndsWellOrNamesItsResidueWhateverHappens) {
    std::map<MoveStage, int> ends;
    for (bool const running : {true, false})
        for (std::size_t at = 0; at < asks_without_trouble(running); ++at)
            for (auto const trouble :
                 {Trouble::refusal, Trouble::lost_request, Trouble::lost_answer, Trouble::crash,
                  Trouble::abort, Trouble::abort_and_refusal}) {
                SCOPED_TRACE(fmt::format("ask {}, trouble {}", at, static_cast<int>(trouble)));
                MoveWorld world;
                auto const move = with_trouble(begin(running), at, trouble, world);
                expect_an_end(move, world, running);
                ++ends[move.stage];
            }
    EXPECT_GT(ends[MoveStage::done], 30);
    EXPECT_GT(ends[MoveStage::returned], 20);
    EXPECT_GT(ends[MoveStage::failed], 2);
}

// The same on the way back, which begins at each stage.
TEST(Move, EndsOnTheWayBackWhateverHappens) {
    for (std::size_t turn = 0; turn + 1 < asks_without_trouble(true); ++turn)
        for (std::size_t at = 0; at < 8; ++at)
            for (auto const trouble :
                 {Trouble::refusal, Trouble::lost_request, Trouble::lost_answer, Trouble::crash}) {
                SCOPED_TRACE(fmt::format("turned at {}, ask {}, trouble {}", turn, at,
                                         static_cast<int>(trouble)));
                MoveWorld world;
                auto move = begin(true);
                for (std::size_t i = 0; i < turn; ++i) move = step(move, world);
                auto const back = turned_back(move, "no time", {});
                ASSERT_TRUE(back) << back.error().detail;
                move = with_trouble(*back, at, trouble, world);
                expect_an_end(move, world, true);
                if (move.stage != MoveStage::failed) continue;
                auto const again = resumed(move, {});
                ASSERT_TRUE(again);
                move = with_trouble(*again, 99, trouble, world);
                expect_an_end(move, world, true);
                EXPECT_NE(move.stage, MoveStage::failed) << "what failed is repaired";
            }
}

TEST(Move, IsResumedOrTurnedBackAfterAFailure) {
    for (auto const stage : {MoveStage::attaching, MoveStage::proving}) {
        MoveWorld world;
        auto const failed = after(at_stage(stage, world), world.refused(planned(true)), {});
        ASSERT_EQ(failed.stage, MoveStage::failed);
        EXPECT_THAT(failed.residue, Contains("VM vm1 is on b"));
        EXPECT_THAT(failed.residue,
                    Contains(HasSubstr("MAC 52:54:00:00:00:01, address 10.0.0.17 of network train: "
                                       "b has it")));
        auto there = world;
        auto move = resumed(failed, {}).value();
        EXPECT_EQ(move.stage, stage);
        EXPECT_EQ(std::get<HostCall>(*ask_of(move)).idempotency_key.back(), '2')
            << "the host keeps the first answer for a day";
        expect_an_end(with_trouble(move, 99, Trouble::crash, there), there, true);
        move = with_trouble(turned_back(failed, "no time", {}).value(), 99, Trouble::crash, world);
        EXPECT_EQ(move.stage, MoveStage::returned);
        expect_an_end(move, world, true);
    }
}

TEST(Move, WaitsUntilADetachIsKnown) {
    MoveWorld world;
    auto const move = at_stage(MoveStage::detaching, world);
    MoveAnswer refusal{Outcome::refusal, Error{Problem::timed_out, "the guest holds it", ""}};
    EXPECT_EQ(after(move, refusal, {}).stage, MoveStage::detaching);
    refusal.still_attached = true;
    EXPECT_EQ(after(move, refusal, {}).stage, MoveStage::reproving);
    refusal.still_attached = false;
    EXPECT_EQ(after(move, refusal, {}).stage, MoveStage::reattaching);
    auto aborted = turned_back(move, "no time", {}).value();
    for (int i = 0; i < 50; ++i) aborted = after(aborted, {Outcome::unknown}, {});
    EXPECT_EQ(aborted.stage, MoveStage::detaching) << "it may be detached, or not";
    EXPECT_EQ(aborted.unknown, 50U);
}

TEST(Move, DoesNotWaitForeverToFreeAKeptVf) {
    MoveWorld world;
    auto move = at_stage(MoveStage::dropping, world);
    for (int i = 0; i < 10; ++i) move = after(move, {Outcome::unknown}, {});
    EXPECT_EQ(move.stage, MoveStage::done);
    EXPECT_THAT(move.residue,
                Contains("a VF of 0000:01:00.0 may be kept on a: reservation move-89abcdef, which "
                         "expires after a day"));
    move = turned_back(begin(true), "no time", {}).value();
    for (int i = 0; i < 20; ++i) move = after(move, {Outcome::unknown}, {});
    EXPECT_EQ(move.stage, MoveStage::returned) << "the target never answered";
    EXPECT_THAT(move.residue, Contains(HasSubstr("may be kept on b")));
}

TEST(Move, RefusesToTurnTwice) {
    MoveWorld world;
    EXPECT_EQ(turned_back(planned(true), "", {})->stage, MoveStage::returned);
    EXPECT_FALSE(turned_back(at_stage(MoveStage::done, world), "", {}));
    MoveWorld other;
    auto const back = turned_back(at_stage(MoveStage::migrating, other), "", {}).value();
    EXPECT_EQ(back.stage, MoveStage::calling_back);
    EXPECT_EQ(turned_back(back, "", {}).error().problem, Problem::conflict);
    EXPECT_EQ(resumed(back, {}).error().problem, Problem::conflict);
}

TEST(Move, IsReadAsItIsWritten) {
    MoveWorld world;
    auto const move = after(at_stage(MoveStage::proving, world), world.refused(planned(true)), {});
    auto const text = to_json_text(nlohmann::json(move));
    EXPECT_EQ(from_json_text<Move>(text).value(), move);
    auto document = nlohmann::json(move);
    document["failed_at"] = nullptr;
    EXPECT_FALSE(from_json_document<Move>(document));
    document["id"] = "../x";
    EXPECT_EQ(from_json_document<Move>(document).error().violations.size(), 2U);
}

}  // namespace
}  // namespace vfmgr::fleet
