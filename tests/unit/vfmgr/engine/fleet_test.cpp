// SPDX-License-Identifier: Apache-2.0
// A host's membership of a fleet: what joining and leaving store, and which commands heed what.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;

FleetMembership membership(char digit = '3') {
    std::string id = "33333333-3333-3333-3333-333333333333";
    std::ranges::replace(id, '3', digit);
    return {id, "host1", {"https://fleet1.example:8480"}, "the CA", {}, {}, 9};
}

Intent by_scheduler(std::uint64_t fence) {
    Intent intent;
    intent.requested_by = "fleet:fleet1";
    intent.fence = fence;
    return intent;
}

struct FleetTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    FakeClock clock;
    std::unique_ptr<Bench> bench;

    FleetTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        start();
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    }
    void start() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    // Ends the engine, and marks its store as `vfctl store restore` does.
    void restart_restored() {
        bench.reset();
        SQLite::Database((folder.path() / "vfmgr.db").string(), SQLite::OPEN_READWRITE)
            .exec("INSERT INTO host VALUES ('restored', '1769860803000')");
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    [[nodiscard]] std::uint64_t fence() const { return bench->desired().fleet.value().fence; }
    Error refused(Command command, Intent intent = {}) {
        auto const answer = bench->submit(std::move(command), std::move(intent));
        return answer ? Error{Problem::internal, "was accepted", {}} : answer.error();
    }
};

TEST_F(FleetTest, JoinsOneFleetAndKnowsItAfterARestart) {
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    start();
    auto const joined = bench->desired().fleet.value();
    EXPECT_EQ(joined.host, "host1");
    EXPECT_EQ(joined.joined_at, clock.now());
    EXPECT_EQ(joined.fence, 0U) << "no scheduler was here yet";
    auto const other = refused(JoinFleet{membership('4')});
    EXPECT_EQ(other.problem, Problem::conflict);
    EXPECT_THAT(other.detail, HasSubstr("member of fleet 3333"));
    auto renamed = membership();
    renamed.host = "host2";
    clock.advance(std::chrono::seconds(5));
    ASSERT_TRUE(bench->submit(JoinFleet{renamed}, by_scheduler(3)));
    EXPECT_EQ(bench->desired().fleet->host, "host2");
    EXPECT_EQ(bench->desired().fleet->joined_at, joined.joined_at);
    EXPECT_EQ(fence(), 3U);
}

TEST_F(FleetTest, LeavesWithItsRanges) {
    EXPECT_EQ(refused(LeaveFleet{}).problem, Problem::not_found);
    Identities identities;
    identities.macs = {{MacAddress{{2, 0, 0, 0, 0, 1}}, MacAddress{{2, 0, 0, 0, 0, 9}}}};
    auto const own = identities;
    identities.claims.macs = {MacAddress{{2, 0, 0, 0, 1, 1}}};
    identities.generation = 5;
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    ASSERT_TRUE(bench->submit(PutIdentities{identities}));
    ASSERT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
    EXPECT_EQ(refused(PutIdentities{own}).problem, Problem::precondition_failed);
    auto taking = identities;
    taking.generation = 6;
    taking.macs.clear();
    EXPECT_THAT(refused(PutIdentities{taking}).detail, HasSubstr("of vm1 has MAC 02:00"));
    ASSERT_TRUE(bench->submit(LeaveFleet{}));
    EXPECT_FALSE(bench->desired().fleet);
    EXPECT_EQ(bench->desired().handed_out.identities, own);
    EXPECT_EQ(bench->desired().attachments.size(), 1U);
    EXPECT_TRUE(bench->submit(PutIdentities{})) << "they are the host's own again";
}

TEST_F(FleetTest, EventsTellOfItsChangesAndNotOfFences) {
    std::vector<EventKind> kinds;
    auto const emit = [&](std::vector<Event> const& events) {
        for (auto const& event : events) kinds.push_back(event.kind);
    };
    ASSERT_TRUE(bench->engine.on_events(emit, 0));
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    ASSERT_TRUE(bench->submit(PutPool{{"fast", {}, {}}}, by_scheduler(4)));
    ASSERT_TRUE(bench->submit(LeaveFleet{}));
    ASSERT_TRUE(bench->engine.on_events({}, 0));
    EXPECT_THAT(kinds, ElementsAre(EventKind::fleet_joined, EventKind::pool_changed,
                                   EventKind::fleet_left));
}

TEST_F(FleetTest, AnEarlierSchedulerIsRefusedAlsoAfterARestart) {
    EXPECT_EQ(refused(PutPool{{"fast", {}, {}}}, by_scheduler(4)).problem, Problem::forbidden)
        << "in no fleet";
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    ASSERT_TRUE(bench->submit(PutPool{{"fast", {}, {}}}, by_scheduler(4)));
    EXPECT_EQ(fence(), 4U);
    start();
    auto const earlier = refused(PutPool{{"slow", {}, {}}}, by_scheduler(3));
    EXPECT_EQ(earlier.problem, Problem::precondition_failed);
    EXPECT_THAT(earlier.detail, HasSubstr("an older scheduler of the fleet"));
    EXPECT_FALSE(bench->desired().pools.contains("slow"));
    EXPECT_TRUE(bench->submit(PutPool{{"slow", {}, {}}}, by_scheduler(4)));
    EXPECT_TRUE(bench->submit(RemovePool{"slow"})) << "whoever is no scheduler shows none";
}

TEST_F(FleetTest, AFenceIsKeptAlsoByWhatIsRefused) {
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    EXPECT_EQ(refused(RemovePool{"none"}, by_scheduler(7)).problem, Problem::not_found);
    EXPECT_EQ(fence(), 7U);
}

TEST_F(FleetTest, ARestoredStoreOfAMemberHandsNothingOutUntilConfirmed) {
    ASSERT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
    ASSERT_TRUE(bench->submit(JoinFleet{membership()}));
    restart_restored();
    auto const waits = refused(Attach{ask()});
    EXPECT_EQ(waits.problem, Problem::unavailable);
    EXPECT_THAT(waits.remedy, HasSubstr("vfctl fleet confirm"));
    ReservationSpec spec;
    spec.network = "train";
    EXPECT_EQ(refused(Reserve{"job", spec}).problem, Problem::unavailable);
    EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)}).problem, std::nullopt);
    auto const id = bench->desired().attachments.begin()->first;
    EXPECT_EQ(bench->run(Detach{id}).state, OperationState::succeeded) << "it can be cleared";
    ASSERT_TRUE(bench->submit(ConfirmRestored{}));
    EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
    start();
    EXPECT_FALSE(bench->desired().restored_at);
}

TEST_F(FleetTest, ARestoredStoreOfNoMemberGoesOn) {
    restart_restored();
    EXPECT_TRUE(bench->desired().restored_at);
    EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
}

}  // namespace
}  // namespace vfmgr
