// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/service/fleet/placement/placement_world.hpp"

namespace vfmgr::fleet {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tests::HostFault;
using tests::PlacementWorld;
using tests::PlacingReplica;

FleetReservationSpec of_blue(std::string name, std::uint16_t count) {
    FleetReservationSpec spec;
    spec.name = std::move(name);
    spec.network = "blue";
    spec.count = count;
    return spec;
}

Principal client(std::string name = "token:ab12cd34") {
    return {std::move(name), Role::operator_};
}

using Names = std::map<std::string, std::string>;

struct Placement : testing::Test {
    PlacementWorld world;
    void SetUp() override {
        world.add_host("h1", 4);
        world.add_host("h2", 8);
    }
};

TEST_F(Placement, KeepsVfsOfTheHostThatSuitsBest) {
    PlacingReplica replica(world, world.elect("r1"));
    auto const made = replica.scheduler.reserve(of_blue("job", 3), client());
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->host, "h1") << "pack: the fullest one";
    EXPECT_EQ(made->state, HoldState::held);
    EXPECT_EQ(made->vfs.size(), 3U);
    EXPECT_EQ(made->requested_by, "token:ab12cd34");
    ASSERT_EQ(made->candidates.size(), 2U);
    EXPECT_TRUE(made->candidates[0].chosen);
    EXPECT_THAT(made->candidates[1].reason, HasSubstr("has 8 free VFs of network blue"));
    auto const& sent = world.hosts["h1"].requests.at(0);
    EXPECT_EQ(sent.method + " " + sent.path, "PUT /v1/reservations/job");
    EXPECT_EQ(sent.headers.at("vfmgr-fence"), std::to_string(*replica.fence));
    EXPECT_THAT(sent.headers.at("vfmgr-on-behalf-of"), HasSubstr("token:ab12cd34"));
    EXPECT_THAT(sent.body, HasSubstr(R"("pfs":[{"count":3,"pf":"0000:01:00.0"}])"));
    EXPECT_EQ(world.reserved(), (Names{{"job", "h1"}}));
}

TEST_F(Placement, GivesWhatHostsHaveNotReportedToNobodyElse) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts_report = false;
    EXPECT_EQ(replica.scheduler.reserve(of_blue("a", 3), client())->host, "h1");
    EXPECT_EQ(replica.scheduler.reserve(of_blue("b", 3), client())->host, "h2")
        << "h1 has one left, whatever it reports";
    EXPECT_EQ(replica.scheduler.unreported(), 2U);
    world.reported["h1"] = {"a"};
    EXPECT_EQ(replica.scheduler.reserve(of_blue("c", 1), client())->host, "h1");
    EXPECT_EQ(replica.scheduler.unreported(), 2U) << "a is in what h1 reports";
    EXPECT_EQ(world.kept().size(), 3U);
}

TEST_F(Placement, TriesTheNextHostWhereOneRefuses) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts["h1"].faults = {HostFault::refuses};
    auto const made = replica.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->host, "h2");
    EXPECT_THAT(made->candidates.back().reason, HasSubstr("refused: it has its reasons"));
    EXPECT_EQ(world.reserved(), (Names{{"job", "h2"}}));
    EXPECT_EQ(world.kept(), (Names{{"job", "h2"}}));
}

TEST_F(Placement, SaysOfEachHostWhyItIsNot) {
    PlacingReplica replica(world, world.elect("r1"));
    auto const many = replica.scheduler.reserve(of_blue("job", 9), client());
    ASSERT_FALSE(many);
    EXPECT_EQ(many.error().problem, Problem::limit_exceeded);
    EXPECT_THAT(many.error().detail, HasSubstr("h1 has 4 free VFs"));
    EXPECT_THAT(many.error().detail, HasSubstr("h2 has 8 free VFs"));
    world.hosts["h1"].faults = {HostFault::refuses};
    world.hosts["h2"].faults = {HostFault::away};
    auto const refused = replica.scheduler.reserve(of_blue("job", 1), client());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("h1 refused: it has its reasons"));
    EXPECT_THAT(refused.error().detail, HasSubstr("h2 refused: no connection"));
    EXPECT_THAT(world.reserved(), IsEmpty());
    EXPECT_EQ(replica.scheduler.unreported(), 0U);
}

TEST_F(Placement, AsksAgainWhenAnAnswerIsLost) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts["h1"].faults = {HostFault::lost_after, HostFault::away, HostFault::lost_before};
    auto const made = replica.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->host, "h1");
    EXPECT_EQ(world.kept(), (Names{{"job", "h1"}}));
}

// Refused now, it may still be kept from the request before, whose answer was lost.
TEST_F(Placement, HasAHostGiveUpWhatItRefusesTheSecondTime) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts["h1"].faults = {HostFault::lost_after, HostFault::refuses};
    auto const made = replica.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->host, "h2");
    EXPECT_EQ(world.kept(), (Names{{"job", "h2"}}));
}

TEST_F(Placement, AssumesNothingOfAHostThatNeverAnswers) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts["h1"].faults.assign(100, HostFault::lost_before);
    world.hosts["h1"].faults.front() = HostFault::lost_after;
    auto const made = replica.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().problem, Problem::timed_out);
    EXPECT_THAT(made.error().remedy, HasSubstr("the same request again"));
    EXPECT_EQ(world.reserved(), (Names{{"job", "h1"}})) << "h1 may keep it";
    world.hosts["h1"].faults.clear();
    auto const again = replica.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->host, "h1");
    EXPECT_EQ(world.kept(), (Names{{"job", "h1"}}));
}

TEST_F(Placement, ErasesWhatItsHostSaysThatItDoesNotKeep) {
    PlacingReplica replica(world, world.elect("r1"));
    world.hosts["h1"].faults.assign(100, HostFault::lost_before);
    EXPECT_FALSE(replica.scheduler.reserve(of_blue("job", 2), client()));
    replica.scheduler.sweep();
    EXPECT_EQ(world.reserved(), (Names{{"job", "h1"}})) << "the host has not answered yet";
    world.hosts["h1"].faults.clear();
    world.clock.moved_ms += 11'000;
    replica.scheduler.sweep();
    EXPECT_THAT(world.reserved(), IsEmpty());
    EXPECT_EQ(replica.scheduler.unreported(), 0U);
}

// One was elected while the other still thinks that it is.
TEST_F(Placement, OfASchedulerThatWasReplacedDoesNothing) {
    PlacingReplica old(world, world.elect("r1"));
    ASSERT_TRUE(old.scheduler.reserve(of_blue("a", 1), client()));
    PlacingReplica next(world, world.elect("r2"));
    auto const late = old.scheduler.reserve(of_blue("b", 1), client());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::unavailable);
    EXPECT_EQ(world.reserved(), (Names{{"a", "h1"}}));
    EXPECT_EQ(world.kept(), (Names{{"a", "h1"}}));
    next.catch_up();
    ASSERT_EQ(next.scheduler.reserve(of_blue("b", 3), client())->host, "h1");
    EXPECT_FALSE(old.scheduler.release("a", client()));
    EXPECT_EQ(world.kept().size(), 2U);
}

// It had written its record, and asks the host when the next scheduler has been there.
TEST_F(Placement, IsRefusedByTheHostOnceAnotherSchedulerWasThere) {
    PlacingReplica old(world, world.elect("r1"));
    std::optional<PlacingReplica> next;
    world.before_host = [&] {
        next.emplace(world, world.elect("r2"));
        next->catch_up();
        next->scheduler.sweep();
    };
    auto const made = old.scheduler.reserve(of_blue("job", 2), client());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().problem, Problem::unavailable);
    EXPECT_THAT(world.kept(), IsEmpty());
    EXPECT_THAT(world.reserved(), IsEmpty()) << "the next one has settled it";
}

// At every durable write, of etcd's and of the hosts', one scheduler dies there, before and after
// it. The next one settles what it finds, and a client that asks again gets it once.
TEST_F(Placement, SurvivesDeathAtEveryWrite) {
    for (std::size_t write = 0; write < 4; ++write)
        for (auto const point : {FaultPoint::before, FaultPoint::after})
            for (bool const refused : {false, true})
                for (bool const asks_again : {false, true}) {
                    SCOPED_TRACE(fmt::format("write {} {}, refused {}, asks again {}", write,
                                             point == FaultPoint::after ? "after" : "before",
                                             refused, asks_again));
                    PlacementWorld each;
                    each.add_host("h1", 4);
                    each.add_host("h2", 8);
                    if (refused) each.hosts["h1"].faults = {HostFault::refuses};
                    bool died = false;
                    {
                        PlacingReplica dies(each, each.elect("r1"));
                        dies.etcd.die_at({write, point});
                        try {
                            if (dies.scheduler.reserve(of_blue("job", 2), client()))
                                static_cast<void>(dies.scheduler.release("job", client()));
                        } catch (CrashNow const&) {
                            died = true;
                        }
                    }
                    EXPECT_EQ(died, write < (refused ? 3U : 2U));
                    PlacingReplica next(each, each.elect("r2"));
                    next.catch_up();
                    if (asks_again) {
                        auto const made = next.scheduler.reserve(of_blue("job", 2), client());
                        ASSERT_TRUE(made) << made.error().detail;
                        EXPECT_EQ(each.kept(), (Names{{"job", made->host}}));
                    } else {
                        next.scheduler.sweep();
                    }
                    EXPECT_EQ(each.reserved(), each.kept());
                    EXPECT_EQ(next.scheduler.unreported(), 0U + (asks_again ? 1U : 0U));
                }
}

TEST_F(Placement, SurvivesDeathAfterTheHostHasDoneIt) {
    for (bool const asks_again : {false, true}) {
        PlacementWorld each;
        each.add_host("h1", 4);
        each.hosts["h1"].faults = {HostFault::dies};
        {
            PlacingReplica dies(each, each.elect("r1"));
            EXPECT_THROW(static_cast<void>(dies.scheduler.reserve(of_blue("job", 2), client())),
                         CrashNow);
        }
        PlacingReplica next(each, each.elect("r2"));
        next.catch_up();
        if (asks_again) EXPECT_TRUE(next.scheduler.reserve(of_blue("job", 2), client()));
        next.scheduler.sweep();
        EXPECT_EQ(each.kept(), (Names{{"job", "h1"}}));
        EXPECT_EQ(each.reserved(), each.kept());
        EXPECT_EQ(next.scheduler.unreported(), 0U);
    }
}

TEST_F(Placement, ReleasesOnTheHostFirst) {
    PlacingReplica replica(world, world.elect("r1"));
    ASSERT_TRUE(replica.scheduler.reserve(of_blue("job", 2), client()));
    world.hosts["h1"].faults = {HostFault::away};
    auto const away = replica.scheduler.release("job", client());
    ASSERT_FALSE(away);
    EXPECT_EQ(away.error().problem, Problem::unavailable);
    EXPECT_EQ(world.reserved().size(), 1U);
    world.hosts["h1"].faults = {HostFault::lost_after};
    ASSERT_TRUE(replica.scheduler.release("job", client()));
    EXPECT_THAT(world.reserved(), IsEmpty());
    EXPECT_THAT(world.kept(), IsEmpty());
    EXPECT_EQ(replica.scheduler.release("job", client()).error().problem, Problem::not_found);
}

TEST_F(Placement, OfAHostThatIsOffIsReleasedWithoutItsWord) {
    PlacingReplica replica(world, world.elect("r1"));
    ASSERT_TRUE(replica.scheduler.reserve(of_blue("job", 2), client()));
    auto record = world.records["h1"];
    record.fenced = Statement{world.clock.now(), "uid:0", "pdu7"};
    world.put_host("h1", record);
    replica.catch_up();
    world.hosts["h1"].faults = {HostFault::away};
    EXPECT_TRUE(replica.scheduler.release("job", client()));
    EXPECT_THAT(world.reserved(), IsEmpty());
}

TEST_F(Placement, IsRenewedByTheSameRequest) {
    PlacingReplica replica(world, world.elect("r1"));
    auto const first = replica.scheduler.reserve(of_blue("job", 3), client());
    ASSERT_TRUE(first);
    // An attachment has taken one of them.
    world.hosts["h1"].kept["job"].vfs.pop_back();
    auto longer = of_blue("job", 3);
    longer.seconds = 3'600;
    auto const renewed = replica.scheduler.reserve(longer, client());
    ASSERT_TRUE(renewed) << renewed.error().detail;
    EXPECT_EQ(renewed->host, first->host);
    EXPECT_EQ(renewed->vfs.size(), 2U) << "what the attachment has taken stays its own";
    EXPECT_GT(renewed->expires_at, first->expires_at + std::chrono::minutes(45));
    EXPECT_EQ(replica.scheduler.reserve(of_blue("job", 2), client()).error().problem,
              Problem::conflict);
    auto const other = replica.scheduler.reserve(of_blue("job", 3), client("uid:7"));
    EXPECT_EQ(other.error().problem, Problem::conflict);
    EXPECT_THAT(other.error().detail, HasSubstr("is token:ab12cd34's"));
}

TEST_F(Placement, GoesWhenItsTimeIsOver) {
    PlacingReplica replica(world, world.elect("r1"));
    ASSERT_TRUE(replica.scheduler.reserve(of_blue("job", 2), client()));
    replica.scheduler.sweep();
    EXPECT_EQ(world.reserved().size(), 1U);
    // The host has freed it by itself.
    world.hosts["h1"].kept.clear();
    world.clock.moved_ms += 620'000;
    replica.scheduler.sweep();
    EXPECT_THAT(world.reserved(), IsEmpty());
}

TEST_F(Placement, GoesAMarginAfterItsTimeWithoutTheHostsWord) {
    PlacingReplica replica(world, world.elect("r1"));
    ASSERT_TRUE(replica.scheduler.reserve(of_blue("job", 2), client()));
    world.hosts_report = false;
    world.hosts["h1"].faults.assign(1'000, HostFault::lost_before);
    world.clock.moved_ms += 620'000;
    replica.scheduler.sweep();
    EXPECT_EQ(world.reserved().size(), 1U) << "the host's clock may be behind";
    world.clock.moved_ms += 300'000;
    replica.scheduler.sweep();
    EXPECT_THAT(world.reserved(), IsEmpty());
}

TEST_F(Placement, IsPlannedWithoutAnyTrace) {
    PlacingReplica replica(world, world.elect("r1"));
    auto const planned = replica.scheduler.preview(of_blue("", 5), client());
    ASSERT_TRUE(planned) << planned.error().detail;
    EXPECT_EQ(planned->state, HoldState::planned);
    EXPECT_EQ(planned->host, "h2");
    ASSERT_EQ(planned->pfs.size(), 1U);
    EXPECT_EQ(planned->pfs[0].count, 5);
    EXPECT_THAT(planned->candidates.at(1).reason, HasSubstr("has 4 free VFs"));
    EXPECT_THAT(world.reserved(), IsEmpty());
    EXPECT_THAT(world.hosts["h2"].requests, IsEmpty());
    EXPECT_EQ(replica.scheduler.unreported(), 0U);
}

TEST_F(Placement, GetsANameIfItHasNone) {
    PlacingReplica replica(world, world.elect("r1"));
    auto const made = replica.scheduler.reserve(of_blue("", 1), client());
    ASSERT_TRUE(made);
    EXPECT_THAT(made->name, testing::MatchesRegex("r-[0-9a-f]{8}"));
}

TEST_F(Placement, OfAGroupStaysInItsRack) {
    for (auto const* const name : {"h1", "h2"}) {
        auto record = world.records[name];
        record.rack = name == std::string("h1") ? "left" : "right";
        world.put_host(name, record);
    }
    PlacingReplica replica(world, world.elect("r1"));
    replica.catch_up();
    auto spec = of_blue("a", 4);
    spec.same_rack = "ring";
    ASSERT_EQ(replica.scheduler.reserve(spec, client())->host, "h1");
    spec.name = "b";
    spec.count = 1;
    auto const other = replica.scheduler.reserve(spec, client());
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().detail, HasSubstr("group ring is in rack left"));
}

TEST(Holding, HasLimits) {
    State state;
    auto all = std::make_shared<Records<ReservationRecord>>();
    for (std::size_t i = 0; i < fleet_reservations_each_max; ++i) {
        ReservationRecord record;
        record.requested_by = "uid:7";
        (*all)[std::to_string(i)] = {record, {}, 1, 1};
    }
    state.reservations = all;
    ReservationRecord record;
    record.spec.name = "more";
    record.requested_by = "uid:7";
    auto const refused = hold(state, record, "");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("uid:7 has 1024 reservations already"));
    record.requested_by = "uid:8";
    EXPECT_TRUE(hold(state, record, ""));
}

TEST(Holding, NamesSomeOfAThousandHosts) {
    std::vector<Ranked> ranked;
    for (int i = 0; i < 900; ++i) ranked.push_back({fmt::format("h{}", i), "", "good", Suits{}});
    for (int i = 0; i < 100; ++i) ranked.push_back({fmt::format("u{}", i), "", "bad"});
    FleetReservation view;
    set_candidates(view, ranked);
    EXPECT_EQ(view.candidates.size(), fleet_candidates_max);
    EXPECT_EQ(view.more_candidates, 1'000U - fleet_candidates_max);
    EXPECT_TRUE(view.candidates.front().chosen);
    EXPECT_EQ(view.candidates.back().host, "u31");
}

}  // namespace
}  // namespace vfmgr::fleet
