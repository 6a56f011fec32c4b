// SPDX-License-Identifier: Apache-2.0
// A follower's copy is etcd's, whatever happens to watches, and it says when it may not be.
#include "service/fleet/etcd/follower.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

struct FollowerTest : testing::Test {
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};
    std::map<std::string, KeyValue> copy;  // by what was reported
    int resets = 0;
    std::vector<std::vector<KeyChange>> batches;
    std::vector<bool> stale;
    Follower follower{etcd,
                      clock,
                      {.prefix = "hosts/", .page = 3},
                      {[this](auto const& all, Revision) {
                           ++resets;
                           for (auto const& one : all) copy.emplace(one.key, one);
                       },
                       [this](auto const& changes, Revision) {
                           batches.push_back(changes);
                           for (auto const& one : changes) {
                               copy.erase(one.key);
                               if (one.now) copy.emplace(one.key, *one.now);
                           }
                       },
                       [this](auto since) { stale.push_back(since.has_value()); }}};

    // Turns until nothing happens any more but waiting; each wait lets time pass.
    void turn(int times = 1) {
        for (int i = 0; i < times; ++i) {
            auto const again = follower.turn();
            if (again > clock.steady_now())
                clock.advance(
                    std::chrono::ceil<std::chrono::milliseconds>(again - clock.steady_now()));
        }
    }
    [[nodiscard]] std::map<std::string, KeyValue> held() {
        auto all = cluster.keys();
        std::erase_if(all, [](auto const& one) { return !one.first.starts_with("hosts/"); });
        return all;
    }
};

TEST_F(FollowerTest, ListsInPagesOfOneRevisionAndThenFollows) {
    for (int i = 0; i < 10; ++i) cluster.put("hosts/" + std::to_string(i), "v");
    cluster.put("other", "v");
    // While it reads pages others write.
    EXPECT_TRUE(follower.stale_since());
    EXPECT_FALSE(follower.as_of());
    turn();
    EXPECT_EQ(resets, 1);
    EXPECT_EQ(etcd.lists(), 4U);
    EXPECT_EQ(copy, held());
    EXPECT_FALSE(follower.stale_since());
    EXPECT_EQ(stale, std::vector<bool>{false});
    cluster.put("hosts/3", "w");
    cluster.erase("hosts/4");
    cluster.put("other", "w");
    turn();
    EXPECT_EQ(copy, held());
    ASSERT_EQ(batches.size(), 1U);
    EXPECT_EQ(batches[0].size(), 2U);
    EXPECT_EQ(resets, 1);
}

TEST_F(FollowerTest, ReportsOnlyWhatDiffersAfterItsWatchEnded) {
    for (int i = 0; i < 5; ++i) cluster.put("hosts/" + std::to_string(i), "v");
    turn();
    cluster.end_watches();
    turn();
    EXPECT_TRUE(follower.stale_since());
    EXPECT_EQ(follower.problem()->problem, Problem::unavailable);
    cluster.put("hosts/1", "w");
    cluster.erase("hosts/2");
    turn();
    EXPECT_EQ(stale, (std::vector<bool>{false, true, false}));
    EXPECT_FALSE(follower.problem());
    ASSERT_EQ(batches.size(), 1U);
    EXPECT_EQ(batches[0].size(), 2U);
    EXPECT_EQ(copy, held());
    cluster.end_watches();
    turn(3);
    EXPECT_EQ(batches.size(), 1U);
    EXPECT_EQ(resets, 1);
}

TEST_F(FollowerTest, FindsWhatAWatchLost) {
    cluster.longest_wait = seconds(1);
    cluster.put("hosts/a", "1");
    turn();
    cluster.put("hosts/a", "2");
    cluster.put("hosts/b", "1");
    cluster.compact(cluster.revision(), FakeCluster::Behind::misses);
    auto const began = clock.steady_now();
    turn();
    EXPECT_NE(copy, held());
    EXPECT_FALSE(follower.stale_since());  // nothing shows it
    while (copy != held() && clock.steady_now() - began < minutes(10)) turn();
    EXPECT_EQ(copy, held());
    EXPECT_LE(clock.steady_now() - began, minutes(5) + seconds(2));
    // The watch goes on, and what the list has shown is not reported again.
    cluster.put("hosts/c", "1");
    turn();
    EXPECT_EQ(copy, held());
    EXPECT_EQ(batches.size(), 2U);
}

TEST_F(FollowerTest, IgnoresOfItsWatchWhatAListHasShown) {
    cluster.longest_wait = seconds(1);
    cluster.put("hosts/a", "1");
    turn();
    clock.advance(minutes(5));
    cluster.put("hosts/a", "2");
    cluster.put("hosts/a", "3");
    turn(3);
    ASSERT_EQ(batches.size(), 1U);
    ASSERT_EQ(batches[0].size(), 1U);
    EXPECT_EQ(batches[0][0].now->value, "3");
}

TEST_F(FollowerTest, ListsAgainWhenItIsBehindACompaction) {
    cluster.put("hosts/a", "1");
    turn();
    cluster.put("hosts/a", "2");
    cluster.compact(cluster.revision(), FakeCluster::Behind::ends);
    turn(2);
    EXPECT_EQ(copy, held());
    EXPECT_EQ(resets, 1);
}

TEST_F(FollowerTest, IsStaleForAsLongAsEtcdIsAway) {
    cluster.put("hosts/a", "1");
    turn();
    auto const as_of = follower.as_of();
    etcd.set_link(FakeEtcd::Link::cut);
    turn();
    auto const since = follower.stale_since();
    ASSERT_TRUE(since);
    auto const began = clock.steady_now();
    auto const lists = etcd.lists();
    while (clock.steady_now() - began < minutes(10)) turn();
    EXPECT_EQ(follower.stale_since(), since);
    EXPECT_EQ(follower.as_of(), as_of);
    EXPECT_EQ(copy, held());  // nothing is forgotten
    // Not more often than every 5 s in the end.
    EXPECT_LE(etcd.lists() - lists, 150U);
    EXPECT_GE(etcd.lists() - lists, 50U);
    cluster.put("hosts/b", "1");
    etcd.set_link(FakeEtcd::Link::works);
    turn();
    EXPECT_EQ(copy, held());
    EXPECT_FALSE(follower.stale_since());
}

TEST_F(FollowerTest, ASignOfLifeWakesNobody) {
    turn();
    auto const before = follower.as_of();
    clock.advance(seconds(100));
    cluster.show_life();
    turn();
    EXPECT_GE(*follower.as_of() - *before, seconds(100));
    EXPECT_TRUE(batches.empty());
    // A lease is kept alive without a change.
    auto const lease = etcd.grant(seconds(10), clock.steady_now() + seconds(1));
    cluster.put("hosts/a", "1", lease->id);
    turn();
    EXPECT_EQ(batches.size(), 1U);
    EXPECT_TRUE(etcd.keep_alive(lease->id, clock.steady_now() + seconds(1)));
    clock.advance(seconds(9));
    EXPECT_TRUE(etcd.keep_alive(lease->id, clock.steady_now() + seconds(1)));
    EXPECT_EQ(batches.size(), 1U);
    turn();  // nothing keeps it alive any more
    EXPECT_EQ(batches.size(), 2U);
    EXPECT_TRUE(copy.empty());
}

TEST_F(FollowerTest, GoesBackWithEtcd) {
    cluster.put("hosts/a", "1");
    auto const backup = cluster.contents();
    for (auto const* const key : {"hosts/a", "hosts/b", "hosts/c"}) cluster.put(key, "2");
    turn();
    cluster.restore(backup);
    cluster.put("hosts/b", "3");
    turn(2);
    EXPECT_EQ(copy, held());
    cluster.put("hosts/b", "4");
    turn();
    EXPECT_EQ(copy, held());
    EXPECT_EQ(resets, 1);
}

TEST_F(FollowerTest, IsRightAfterAnyHistory) {
    std::mt19937_64 random(20'260'131);
    auto const pick = [&](std::uint64_t below) { return random() % below; };
    for (int i = 0; i < 5'000; ++i) {
        auto const key = (pick(5) == 0 ? "other/" : "hosts/") + std::to_string(pick(12));
        switch (pick(12)) {
            case 0:
                cluster.end_watches();
                break;
            case 1:
                cluster.erase(key);
                break;
            case 2:
                etcd.set_link(FakeEtcd::Link::cut);
                break;
            case 3:
                etcd.set_link(FakeEtcd::Link::frozen);
                break;
            case 4:
                cluster.compact(
                    cluster.revision() - static_cast<Revision>(pick(4)),
                    pick(2) == 0 ? FakeCluster::Behind::ends : FakeCluster::Behind::misses);
                break;
            case 5:
                cluster.show_life();
                break;
            case 6:
            case 7:
                etcd.set_link(FakeEtcd::Link::works);
                break;
            case 8:
                turn();
                break;
            default:
                cluster.put(key, std::to_string(i));
        }
        if (i % 500 != 499) continue;
        etcd.set_link(FakeEtcd::Link::works);
        auto const lists = etcd.lists();
        while (etcd.lists() < lists + 8) turn();  // a whole list at least
        ASSERT_EQ(copy, held()) << i;
        ASSERT_FALSE(follower.stale_since());
    }
    EXPECT_EQ(resets, 1);
}

TEST(FollowerThreadTest, FollowsAndStopsWhileItWaits) {
    FakeCluster cluster{static_cast<Clock const&>(system_clock())};
    FakeEtcd etcd{cluster};
    std::mutex mutex;
    std::condition_variable happened;
    bool follows = false;
    std::vector<KeyChange> last;
    Follower follower{etcd,
                      system_clock(),
                      {.prefix = ""},
                      {[](auto const&, Revision) {},
                       [&](auto const& changes, Revision) {
                           std::lock_guard const lock(mutex);
                           last = changes;
                           happened.notify_all();
                       },
                       [&](auto since) {
                           std::lock_guard const lock(mutex);
                           follows = !since;
                           happened.notify_all();
                       }}};
    follower.start();
    std::unique_lock lock(mutex);
    ASSERT_TRUE(happened.wait_for(lock, seconds(30), [&] { return follows; }));
    cluster.put("k", "v");
    ASSERT_TRUE(happened.wait_for(lock, seconds(30), [&] { return !last.empty(); }));
    EXPECT_EQ(last.front().key, "k");
    lock.unlock();
    follower.stop();
}

}  // namespace
}  // namespace vfmgr::fleet
