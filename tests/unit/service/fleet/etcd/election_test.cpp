// SPDX-License-Identifier: Apache-2.0
// At most one leads, whoever leads knows when it can't be sure, and another takes its place.
#include "service/fleet/etcd/election.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Replica {
    FakeEtcd etcd;
    std::vector<std::string> calls;
    Election election;
    Deadline again;

    Replica(FakeCluster& cluster, FakeClock const& clock, std::string const& name)
        : etcd(cluster),
          election(etcd, clock, {"election/scheduler", name},
                   {[this](Revision fence) { calls.push_back("elected " + std::to_string(fence)); },
                    [this] { calls.emplace_back("lost"); }}),
          again(clock.steady_now()) {}
};

struct ElectionTest : testing::Test {
    FakeClock clock;
    FakeCluster cluster{clock};
    Replica a{cluster, clock, "a"};
    Replica b{cluster, clock, "b"};
    std::set<Replica*> paused;
    Revision fence = 0;  // the highest so far

    ElectionTest() { cluster.longest_wait = milliseconds(100); }
    // Gives each its turns for so long.
    void run(milliseconds time) {
        auto const until = clock.steady_now() + time;
        while (clock.steady_now() < until) {
            auto next = until;
            for (auto* const one : {&a, &b}) {
                if (paused.contains(one)) continue;
                if (one->again <= clock.steady_now()) one->again = one->election.turn();
                next = std::min(next, one->again);
                check();
            }
            if (next > clock.steady_now())
                clock.advance(std::chrono::ceil<milliseconds>(next - clock.steady_now()));
            check();
        }
    }
    void check() {
        auto const of_a = a.election.fence();
        auto const of_b = b.election.fence();
        ASSERT_FALSE(of_a && of_b);
        for (auto const one : {of_a, of_b}) {
            if (!one) continue;
            ASSERT_GE(*one, fence);
            fence = *one;
            // Etcd has not given it away.
            auto const keys = cluster.keys();
            auto const key = keys.find("election/scheduler");
            ASSERT_TRUE(key != keys.end());
            ASSERT_EQ(key->second.create_revision, *one);
        }
    }
    Replica* leader() {
        if (a.election.fence()) return &a;
        return b.election.fence() ? &b : nullptr;
    }
};

TEST_F(ElectionTest, OneLeadsAndStaysLeader) {
    run(seconds(60));
    auto* const first = leader();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->calls.size(), 1U);
    EXPECT_EQ(first->calls.front(), "elected " + std::to_string(*first->election.fence()));
    auto* const other = first == &a ? &b : &a;
    EXPECT_TRUE(other->calls.empty());
    EXPECT_EQ(other->election.leader()->value, first == &a ? "a" : "b");
    EXPECT_EQ(other->election.leader()->create_revision, *first->election.fence());
    EXPECT_EQ(cluster.revision(), 2);  // it is kept by its lease, and not written again
}

TEST_F(ElectionTest, WhoResignsIsFollowedAtOnce) {
    run(seconds(30));
    auto* const first = leader();
    ASSERT_NE(first, nullptr);
    paused.insert(first);
    first->election.stop();
    EXPECT_THAT(first->calls, testing::ElementsAre(testing::StartsWith("elected"), "lost"));
    auto const began = clock.steady_now();
    auto* const other = first == &a ? &b : &a;
    while (!leader() && clock.steady_now() - began < seconds(60)) run(milliseconds(100));
    EXPECT_EQ(leader(), other);
    EXPECT_LE(clock.steady_now() - began, seconds(4));
}

TEST_F(ElectionTest, WhoIsCutOffStopsBeforeAnotherBegins) {
    for (auto const link : {FakeEtcd::Link::cut, FakeEtcd::Link::frozen}) {
        run(seconds(30));
        auto* const first = leader();
        ASSERT_NE(first, nullptr);
        auto* const other = first == &a ? &b : &a;
        first->calls.clear();
        other->calls.clear();
        first->etcd.set_link(link);
        run(seconds(40));
        EXPECT_EQ(first->calls, std::vector<std::string>{"lost"});
        EXPECT_EQ(leader(), other);
        first->etcd.set_link(FakeEtcd::Link::works);
        run(seconds(30));
        EXPECT_EQ(leader(), other);
        EXPECT_EQ(first->election.leader()->value, other == &a ? "a" : "b");
    }
}

TEST_F(ElectionTest, WaitsForNoAnswerLongerThanItCanBeSure) {
    cluster.longest_wait = std::chrono::hours(1);
    auto const turn_of_a = [this] {
        auto const again = a.election.turn();
        if (again > clock.steady_now())
            clock.advance(std::chrono::ceil<milliseconds>(again - clock.steady_now()));
    };
    for (auto const link : {FakeEtcd::Link::cut, FakeEtcd::Link::frozen}) {
        a.etcd.set_link(FakeEtcd::Link::works);
        for (int i = 0; i < 20; ++i) turn_of_a();
        ASSERT_TRUE(a.election.fence());
        a.calls.clear();
        a.etcd.set_link(link);
        auto const began = clock.steady_now();
        while (a.calls.empty()) turn_of_a();
        EXPECT_EQ(a.calls, std::vector<std::string>{"lost"});
        // Two thirds of the lease, and etcd keeps it for all of it.
        EXPECT_LE(clock.steady_now() - began, milliseconds(6'700));
        EXPECT_TRUE(cluster.keys().contains("election/scheduler"));
    }
}

TEST_F(ElectionTest, AProcessThatWasPausedDoesNotTrustItself) {
    run(seconds(30));
    auto* const first = leader();
    ASSERT_NE(first, nullptr);
    paused.insert(first);
    clock.advance(milliseconds(6'700));
    EXPECT_FALSE(first->election.fence());  // without a turn of its thread
    run(seconds(30));
    EXPECT_NE(leader(), nullptr);
    EXPECT_NE(leader(), first);
    EXPECT_EQ(first->calls.size(), 1U);
    paused.clear();
    run(seconds(30));
    EXPECT_EQ(first->calls.back(), "lost");
    EXPECT_NE(leader(), first);
}

TEST_F(ElectionTest, ALostAnswerToItsCandidacyIsFoundByItsLease) {
    for (auto const fault : {CommitFault::lost_after, CommitFault::under_way,
                             CommitFault::lost_before, CommitFault::refused}) {
        FakeCluster own{clock};
        Replica one{own, clock, "one"};
        one.etcd.fail_commits({fault});
        static_cast<void>(one.election.turn());
        own.deliver();
        for (int i = 0; i < 40 && !one.election.fence(); ++i) {
            clock.advance(milliseconds(100));
            static_cast<void>(one.election.turn());
        }
        ASSERT_TRUE(one.election.fence());
        EXPECT_EQ(own.keys().at("election/scheduler").create_revision, *one.election.fence());
        EXPECT_EQ(one.calls.size(), 1U);
    }
}

TEST_F(ElectionTest, WhoseKeyIsErasedOrLeaseEndedStepsDown) {
    paused.insert(&b);
    run(seconds(10));
    ASSERT_TRUE(a.election.fence());
    auto const before = *a.election.fence();
    cluster.erase("election/scheduler");
    run(seconds(10));
    EXPECT_EQ(a.calls.size(), 3U);
    ASSERT_TRUE(a.election.fence());
    EXPECT_GT(*a.election.fence(), before);
    cluster.expire(cluster.keys().at("election/scheduler").lease);
    run(seconds(10));
    EXPECT_EQ(a.calls.size(), 5U);
    EXPECT_TRUE(a.election.fence());
}

TEST_F(ElectionTest, WhatItsWatchDeliversLateChangesNothing) {
    paused.insert(&b);
    run(seconds(10));
    a.calls.clear();
    // Another leads for a moment, between what the watch has shown and the candidacy.
    bool once = true;
    a.etcd.on_commit = [&](Transaction const&) {
        if (!std::exchange(once, false)) return;
        cluster.put("election/scheduler", "b");
        cluster.erase("election/scheduler");
    };
    cluster.erase("election/scheduler");
    run(seconds(20));
    EXPECT_FALSE(once);
    EXPECT_THAT(a.calls, testing::ElementsAre("lost", testing::StartsWith("elected")));
}

TEST_F(ElectionTest, GivesUpBeforeItLetsItsKeyGo) {
    bool there = false;
    FakeEtcd etcd{cluster};
    Election one{etcd, clock, {"e", "v"}, {{}, [&] { there = cluster.keys().contains("e"); }}};
    for (int i = 0; i < 3; ++i) static_cast<void>(one.turn());
    ASSERT_TRUE(one.fence());
    clock.advance(seconds(7));  // of the 10 that etcd keeps it
    for (int i = 0; i < 3; ++i) static_cast<void>(one.turn());
    EXPECT_TRUE(there);
    EXPECT_TRUE(one.fence());  // it ends the old lease itself, and is elected again
    there = false;
    one.stop();
    EXPECT_TRUE(there);
}

TEST_F(ElectionTest, LosesNothingWhenItsWatchEnds) {
    run(seconds(10));
    auto* const first = leader();
    ASSERT_NE(first, nullptr);
    for (int i = 0; i < 10; ++i) {
        cluster.end_watches();
        run(seconds(3));
    }
    EXPECT_EQ(leader(), first);
    EXPECT_EQ(first->calls.size(), 1U);
}

TEST_F(ElectionTest, AtMostOneLeadsWhateverHappens) {
    std::mt19937_64 random(20'260'131);
    auto const pick = [&](std::uint64_t below) { return random() % below; };
    std::set<Revision> fences;
    for (int i = 0; i < 3'000; ++i) {
        auto& one = pick(2) == 0 ? a : b;
        switch (pick(8)) {
            case 0:
                one.etcd.set_link(FakeEtcd::Link::cut);
                break;
            case 1:
                one.etcd.set_link(FakeEtcd::Link::frozen);
                break;
            case 2:
                cluster.end_watches();
                break;
            case 3:
                paused.insert(&one);
                break;
            case 4:
                paused.clear();
                break;
            case 5:
                one.etcd.fail_commits({static_cast<CommitFault>(pick(5))});
                cluster.deliver();
                break;
            default:
                one.etcd.set_link(FakeEtcd::Link::works);
        }
        if (paused.size() == 2) paused.clear();
        run(milliseconds(pick(5'000)));
        if (testing::Test::HasFatalFailure()) return;
        if (auto* const now = leader()) fences.insert(*now->election.fence());
    }
    EXPECT_GT(fences.size(), 100U);
}

TEST(ElectionThreadTest, IsElectedAndResignsOnItsOwnThread) {
    FakeCluster cluster{static_cast<Clock const&>(system_clock())};
    FakeEtcd etcd{cluster};
    std::mutex mutex;
    std::condition_variable called;
    std::vector<std::string> calls;
    auto const call = [&](std::string what) {
        std::lock_guard const lock(mutex);
        calls.push_back(std::move(what));
        called.notify_all();
    };
    Election election{etcd,
                      system_clock(),
                      {"e", "v"},
                      {[&](Revision) { call("elected"); }, [&] { call("lost"); }}};
    election.start();
    {
        std::unique_lock lock(mutex);
        EXPECT_TRUE(called.wait_for(lock, seconds(30), [&] { return !calls.empty(); }));
    }
    EXPECT_TRUE(election.fence());
    election.stop();
    EXPECT_EQ(calls, (std::vector<std::string>{"elected", "lost"}));
    EXPECT_TRUE(cluster.keys().empty());
}

struct PresenceTest : testing::Test {
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};
    Presence presence{etcd, clock, {"replicas/a", "here"}};

    void run(seconds time) {
        auto const until = clock.steady_now() + time;
        while (clock.steady_now() < until) {
            auto const again = std::min(until, presence.turn());
            if (again > clock.steady_now())
                clock.advance(std::chrono::ceil<milliseconds>(again - clock.steady_now()));
        }
    }
};

TEST_F(PresenceTest, IsThereUntilItStops) {
    etcd.fail_commits({CommitFault::lost_before, CommitFault::refused});
    run(seconds(60));
    EXPECT_EQ(cluster.keys().at("replicas/a").value, "here");
    EXPECT_EQ(cluster.revision(), 2);
    presence.stop();
    EXPECT_TRUE(cluster.keys().empty());
}

TEST_F(PresenceTest, IsGoneWhileItIsCutOffAndComesAgain) {
    run(seconds(10));
    etcd.set_link(FakeEtcd::Link::frozen);
    run(seconds(12));
    EXPECT_TRUE(cluster.keys().empty());
    etcd.set_link(FakeEtcd::Link::works);
    run(seconds(10));
    EXPECT_TRUE(cluster.keys().contains("replicas/a"));
}

TEST_F(PresenceTest, SucceedsAnEarlierProcessOfItsName) {
    auto const old = etcd.grant(seconds(10), clock.steady_now() + seconds(1));
    cluster.put("replicas/a", "before", old->id);
    run(seconds(30));
    EXPECT_EQ(cluster.keys().at("replicas/a").value, "here");
}

}  // namespace
}  // namespace vfmgr::fleet
