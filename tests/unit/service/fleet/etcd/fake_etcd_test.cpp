// SPDX-License-Identifier: Apache-2.0
// The fake: its claims, which tests/fleet also runs on etcd, and its faults.
#include "tests/fakes/fake_etcd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "service/fleet/etcd/answers.hpp"
#include "tests/fakes/etcd_claims.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::seconds;

struct FakeEtcdTest : testing::Test {
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};
    Transaction const put{{}, {Put{"k", "v"}}};

    [[nodiscard]] Deadline in(int s) const { return clock.steady_now() + seconds(s); }
};

TEST_F(FakeEtcdTest, BehavesAsItClaims) {
    EXPECT_THAT(broken_claims(etcd, clock, seconds(10)), testing::IsEmpty());
}

TEST(FakeEtcdThreadsTest, BehavesAsItClaimsWhereTimeIsReal) {
    FakeCluster cluster{static_cast<Clock const&>(system_clock())};
    FakeEtcd etcd{cluster};
    EXPECT_THAT(broken_claims(etcd, system_clock(), seconds(10)), testing::IsEmpty());
}

TEST_F(FakeEtcdTest, ForgetsWhatIsCompacted) {
    auto const first = cluster.put("k", "1");
    auto const second = cluster.put("k", "2");
    cluster.put("gone", "");
    cluster.erase("gone");
    auto behind = etcd.watch({.key = "", .revision = second}, in(1));
    cluster.compact(cluster.revision(), FakeCluster::Behind::ends);
    auto const past = etcd.range({.key = "k", .revision = first}, in(1));
    ASSERT_FALSE(past);
    EXPECT_TRUE(is_compacted(past.error()));
    EXPECT_EQ(etcd.range({.key = "k"}, in(1))->entries.front().value, "2");
    auto const ended = (*behind)->next(in(1));
    ASSERT_FALSE(ended);
    EXPECT_TRUE(is_compacted(ended.error()));
    EXPECT_FALSE((*etcd.watch({.key = "", .revision = first}, in(1)))->next(in(1)));
}

TEST_F(FakeEtcdTest, LosesEventsAroundACompaction) {
    auto watch = etcd.watch({.key = "", .revision = cluster.revision() + 1}, in(1));
    cluster.put("lost", "");
    cluster.compact(cluster.revision(), FakeCluster::Behind::misses);
    cluster.put("kept", "");
    auto const batch = (*watch)->next(in(1));
    ASSERT_TRUE(batch && *batch);
    ASSERT_EQ((*batch)->changes.size(), 1U);
    EXPECT_EQ((*batch)->changes.front().key, "kept");
}

TEST_F(FakeEtcdTest, LosesAnswersInEachWay) {
    using enum CommitFault;
    etcd.fail_commits({refused, lost_before, lost_after, under_way});
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::unavailable);
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::timed_out);
    EXPECT_TRUE(cluster.keys().empty());
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::timed_out);
    EXPECT_EQ(cluster.keys().size(), 1U);
    cluster.erase("k");
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::timed_out);
    EXPECT_TRUE(cluster.keys().empty());
    cluster.deliver();
    EXPECT_EQ(cluster.keys().size(), 1U);
    EXPECT_TRUE(etcd.commit(put, in(1)));
}

TEST_F(FakeEtcdTest, TakesTheLastSpaceAndSaysThatThereWasNone) {
    cluster.set_space(FakeCluster::Space::last);
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::limit_exceeded);
    EXPECT_EQ(cluster.keys().size(), 1U);
    EXPECT_EQ(etcd.commit({{}, {Put{"l", ""}}}, in(1)).error().problem, Problem::limit_exceeded);
    EXPECT_EQ(etcd.grant(seconds(5), in(1)).error().problem, Problem::limit_exceeded);
    EXPECT_EQ(etcd.members(in(1)).front().alarms, std::vector<std::string>{"NOSPACE"});
    EXPECT_TRUE(etcd.commit({{}, {Erase{"k"}}}, in(1)));
    EXPECT_TRUE(cluster.keys().empty());
}

TEST_F(FakeEtcdTest, AnswersNothingWhenFrozenAndEndsWatchesWhenCut) {
    auto watch = etcd.watch({.key = "", .revision = cluster.revision() + 1}, in(1));
    etcd.set_link(FakeEtcd::Link::frozen);
    cluster.put("k", "v");
    auto const began = clock.steady_now();
    EXPECT_EQ(etcd.range({.key = "k"}, in(4)).error().problem, Problem::timed_out);
    EXPECT_EQ(clock.steady_now() - began, seconds(4));
    auto const nothing = (*watch)->next(in(2));
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    etcd.set_link(FakeEtcd::Link::cut);
    EXPECT_EQ(etcd.commit(put, in(1)).error().problem, Problem::unavailable);
    EXPECT_FALSE((*watch)->next(in(1)));
    etcd.set_link(FakeEtcd::Link::works);
    EXPECT_FALSE((*watch)->next(in(1)));
    EXPECT_TRUE(etcd.commit(put, in(1)));
}

TEST_F(FakeEtcdTest, DiesAtAWrite) {
    for (auto const point : {FaultPoint::before, FaultPoint::after}) {
        cluster.erase("1");
        FakeEtcd dying{cluster};
        dying.die_at({.call = 1, .point = point});
        EXPECT_TRUE(dying.commit({{}, {Put{"0", ""}}}, in(1)));
        EXPECT_TRUE(dying.commit({{present("0")}, {}}, in(1)));  // writes nothing
        EXPECT_THROW(static_cast<void>(dying.commit({{}, {Put{"1", ""}}}, in(1))), CrashNow);
        EXPECT_THROW(static_cast<void>(dying.range({.key = "0"}, in(1))), CrashNow);
        EXPECT_EQ(cluster.keys().contains("1"), point == FaultPoint::after);
    }
}

TEST_F(FakeEtcdTest, GoesBackToABackup) {
    cluster.put("k", "1");
    auto const backup = cluster.contents();
    cluster.put("k", "2");
    auto watch = etcd.watch({.key = "", .revision = 1}, in(1));
    cluster.restore(backup);
    EXPECT_EQ(cluster.keys().at("k").value, "1");
    EXPECT_EQ(cluster.revision(), backup.revision);
    EXPECT_FALSE((*watch)->next(in(1)));
}

}  // namespace
}  // namespace vfmgr::fleet
