// SPDX-License-Identifier: Apache-2.0
// A transaction is carried out at most once, and its sender always learns rightly whether it was.
#include "service/fleet/etcd/settle.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::seconds;
using enum CommitFault;

struct Settler {
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};
    Timing timing{clock, [this](Deadline then) {
                      if (then > clock.steady_now())
                          clock.advance(std::chrono::ceil<std::chrono::milliseconds>(
                              then - clock.steady_now()));
                      return true;
                  }};

    // Creates "k", or changes it.
    [[nodiscard]] GuardedTransaction creation() const {
        return {{{absent("k")}, {Put{"k", R"({"act":"mine"})"}, Put{"side", ""}}}, "k", "mine"};
    }
    [[nodiscard]] GuardedTransaction change() {
        auto const revision = cluster.put("k", "before");
        auto guarded = creation();
        guarded.transaction.compares = {unchanged("k", revision)};
        return guarded;
    }
    [[nodiscard]] Deadline soon() const { return clock.steady_now() + seconds(1); }
    [[nodiscard]] Result<Settled> settled(GuardedTransaction const& guarded, int within = 30) {
        return settle(etcd, guarded, timing, clock.steady_now() + seconds(within));
    }
    // How often it was carried out.
    [[nodiscard]] std::size_t times() const {
        std::size_t number = 0;
        auto const held = cluster.contents();
        if (auto const versions = held.keys.find("k"); versions != held.keys.end())
            for (auto const& version : versions->second)
                number += version.now && version.now->value.find("mine") != std::string::npos;
        return number;
    }
};

TEST(SettleTest, AnswersAtOnceWhereNothingIsLost) {
    Settler one;
    EXPECT_EQ(*one.settled(one.creation()), Settled(Done{2}));
    EXPECT_EQ(one.etcd.commits(), 1U);
    Settler two;
    two.cluster.put("k", "theirs");
    auto const refused = two.settled(two.creation());
    EXPECT_EQ(std::get<Refused>(*refused).found, (std::vector{KeyValue{"k", "theirs", 2, 2}}));
    EXPECT_EQ(two.etcd.commits(), 1U);
}

struct Interleaving {
    std::vector<CommitFault> faults;
    std::size_t rival = 0;    // another writes the key before this attempt
    std::size_t arrives = 0;  // what is under way arrives before this attempt
    bool creates = false;
};

// Returns what it reported, after checking it against what happened.
std::string reported(Interleaving const& one) {
    Settler settler;
    auto const guarded = one.creates ? settler.creation() : settler.change();
    settler.etcd.fail_commits({one.faults.begin(), one.faults.end()});
    std::size_t attempt = 0;
    settler.etcd.on_commit = [&](Transaction const&) {
        if (attempt == one.arrives) settler.cluster.deliver();
        if (attempt == one.rival) settler.cluster.put("k", "rival");
        ++attempt;
    };
    auto const result = settler.settled(guarded);
    settler.cluster.deliver();
    EXPECT_LE(settler.times(), 1U);
    if (!result) return "error " + std::string(code(result.error().problem));
    bool const done = std::holds_alternative<Done>(*result);
    EXPECT_EQ(settler.times(), done ? 1U : 0U);
    return done ? "done" : "refused";
}

std::vector<std::vector<CommitFault>> sequences(std::size_t longest) {
    std::vector<std::vector<CommitFault>> all{{}};
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].size() == longest) continue;
        for (auto const fault : {refused, lost_before, lost_after, under_way}) {
            all.push_back(all[i]);
            all.back().push_back(fault);
        }
    }
    return all;
}

TEST(SettleTest, TellsTheTruthInEveryInterleaving) {
    std::map<std::string, int> count;
    for (auto const& faults : sequences(3))
        for (std::size_t rival = 0; rival < 5; ++rival)
            for (std::size_t arrives = 0; arrives < 5; ++arrives)
                for (bool const creates : {false, true}) {
                    SCOPED_TRACE(testing::Message()
                                 << faults.size() << " faults, rival " << rival << ", arrives "
                                 << arrives << ", creates " << creates);
                    ++count[reported({faults, rival, arrives, creates})];
                    if (testing::Test::HasFailure()) return;
                }
    // Etcd answers in the end, so it is always known.
    EXPECT_EQ(count.size(), 2U);
    EXPECT_GT(count["done"], 1'000);
    EXPECT_GT(count["refused"], 1'000);
}

TEST(SettleTest, WithoutAnAnswerItIsNotKnown) {
    for (auto const fault : {lost_before, lost_after, under_way}) {
        Settler one;
        auto guarded = one.creation();
        one.etcd.on_commit = [&](Transaction const&) { one.etcd.fail_commits({fault}); };
        auto const result = one.settled(guarded);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().problem, Problem::timed_out);
        EXPECT_EQ(result.error().causes.front().code, "DEADLINE_EXCEEDED");
        EXPECT_GT(one.etcd.commits(), 10U);
        EXPECT_LE(one.etcd.commits(), 60U);  // it waits in between
        // Settled later.
        one.etcd.on_commit = nullptr;
        one.etcd.fail_commits({});
        guarded.sent_before = true;
        EXPECT_TRUE(std::holds_alternative<Done>(*one.settled(guarded)));
        EXPECT_EQ(one.times(), 1U);
    }
}

TEST(SettleTest, WhatWasOverwrittenSinceWasStillDone) {
    for (bool const creates : {false, true})
        for (int const writes : {1, 5, 200}) {
            Settler one;
            auto guarded = creates ? one.creation() : one.change();
            auto const done = one.etcd.commit(guarded.transaction, one.soon());
            for (int i = 0; i < writes; ++i) one.cluster.put("k", std::to_string(i));
            guarded.sent_before = true;
            EXPECT_EQ(*one.settled(guarded), Settled(Done{done->revision})) << writes;
        }
}

// What a later settle() reports of a change that another one made impossible, or that was made.
std::string reported_after(bool made, std::function<void(FakeCluster&)> const& happens) {
    Settler one;
    auto guarded = one.change();
    if (made)
        EXPECT_TRUE(one.etcd.commit(guarded.transaction, one.soon()));
    else
        one.cluster.put("k", "theirs");
    happens(one.cluster);
    guarded.sent_before = true;
    auto const result = one.settled(guarded);
    if (!result) return std::string(code(result.error().problem));
    return std::holds_alternative<Done>(*result) ? "done" : "refused";
}

TEST(SettleTest, HistoryTellsUnlessItIsCompacted) {
    auto const erased = [](FakeCluster& cluster) { cluster.erase("k"); };
    EXPECT_EQ(reported_after(true, erased), "done");
    EXPECT_EQ(reported_after(false, erased), "refused");
    auto const created_again = [](FakeCluster& cluster) {
        cluster.erase("k");
        cluster.put("k", "theirs");
    };
    EXPECT_EQ(reported_after(true, created_again), "done");
    EXPECT_EQ(reported_after(false, created_again), "refused");
    auto const forgotten = [](FakeCluster& cluster) {
        cluster.put("k", "theirs");
        cluster.compact(cluster.revision(), FakeCluster::Behind::ends);
    };
    EXPECT_EQ(reported_after(true, forgotten), "timed_out");
    EXPECT_EQ(reported_after(false, forgotten), "timed_out");
}

TEST(SettleTest, ALastSpaceThatWasTakenIsKnown) {
    Settler one;
    one.cluster.set_space(FakeCluster::Space::last);
    EXPECT_EQ(*one.settled(one.creation()), Settled(Done{2}));
    Settler two;
    two.cluster.set_space(FakeCluster::Space::none);
    auto const refused_at_once = two.settled(two.creation());
    ASSERT_FALSE(refused_at_once);
    EXPECT_EQ(refused_at_once.error().problem, Problem::limit_exceeded);
    EXPECT_EQ(two.etcd.commits(), 1U);
    // An earlier attempt may still be under way.
    Settler three;
    three.cluster.set_space(FakeCluster::Space::none);
    three.etcd.fail_commits({under_way});
    auto const pending = three.settled(three.creation());
    ASSERT_FALSE(pending);
    EXPECT_EQ(pending.error().problem, Problem::timed_out);
}

TEST(SettleTest, ALastSpaceWhoseKeyWasWrittenOverIsKnown) {
    for (bool const creates : {false, true})
        for (auto const space : {FakeCluster::Space::last, FakeCluster::Space::none}) {
            Settler one;
            auto const guarded = creates ? one.creation() : one.change();
            one.cluster.set_space(space);
            one.etcd.on_range = [&](Query const& query) {
                if (query.revision == 0) one.cluster.put("k", "theirs");
            };
            auto const result = one.settled(guarded);
            ASSERT_TRUE(result);
            bool const made = space == FakeCluster::Space::last;
            EXPECT_EQ(std::holds_alternative<Done>(*result), made);
            EXPECT_EQ(one.times(), made ? 1U : 0U);
        }
}

TEST(SettleTest, AnErrorAfterALostAnswerIsNotTheAnswer) {
    Settler one;
    one.etcd.fail_commits({under_way});
    auto guarded = one.creation();
    auto& put = std::get<Put>(guarded.transaction.writes.front());
    put.lease = one.etcd.grant(seconds(60), one.soon())->id;
    one.etcd.on_commit = [&](Transaction const&) {
        if (one.etcd.commits() > 0) one.cluster.expire(put.lease);
    };
    auto const result = one.settled(guarded);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().problem, Problem::timed_out);
    EXPECT_EQ(result.error().causes.front().code, "NOT_FOUND");
}

TEST(SettleTest, WhatWasSurelyNotCarriedOutIsNotPending) {
    Settler one;
    one.etcd.set_link(FakeEtcd::Link::cut);
    auto const unreachable = one.settled(one.creation());
    ASSERT_FALSE(unreachable);
    EXPECT_EQ(unreachable.error().problem, Problem::unavailable);
    EXPECT_GT(one.etcd.commits(), 5U);
    Settler two;
    two.etcd.set_link(FakeEtcd::Link::frozen);
    EXPECT_EQ(two.settled(two.creation()).error().problem, Problem::timed_out);
}

TEST(SettleTest, RefusesWhatCouldBeCarriedOutTwice) {
    Settler one;
    auto const refuses = [&](auto const& change) {
        auto guarded = one.creation();
        change(guarded);
        auto const result = one.settled(guarded);
        return !result && result.error().problem == Problem::internal;
    };
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.transaction.compares.clear(); }));
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.transaction.compares = {present("k")}; }));
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.transaction.compares = {absent("l")}; }));
    EXPECT_TRUE(
        refuses([](auto& guarded) { guarded.transaction.compares = {created_at("k", 7)}; }));
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.act = "another"; }));
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.act.clear(); }));
    EXPECT_TRUE(refuses([](auto& guarded) { guarded.transaction.writes = {Erase{"k"}}; }));
    EXPECT_EQ(one.etcd.commits(), 0U);
}

TEST(SettleTest, EndsWhenItIsToStop) {
    Settler one;
    one.etcd.fail_commits({lost_before});
    one.timing.wait_until = [](Deadline) { return false; };
    auto const result = one.settled(one.creation());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().problem, Problem::timed_out);
    EXPECT_EQ(one.etcd.commits(), 1U);
}

}  // namespace
}  // namespace vfmgr::fleet
