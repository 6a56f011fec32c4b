// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

std::unique_ptr<Control> start(example::TemporaryFolder const& folder) {
    return Control::start(Store::open(folder.path() / "vfmgr.db").value(), system_clock()).value();
}

TEST(Control, ReadersSeeTokensAsSoonAsTheyAreSavedOrErased) {
    example::TemporaryFolder const folder;
    Token const token{"id", "aa", "viewer", "for a test", Time{}, {}};
    {
        auto const control = start(folder);
        EXPECT_TRUE(control->snapshot().tokens->empty());
        ASSERT_TRUE(control->wait([&](Control::State& state) { return state.save_token(token); }));
        EXPECT_EQ(control->snapshot().tokens->at("aa"), token);
    }
    auto const control = start(folder);
    EXPECT_EQ(control->snapshot().tokens->at("aa"), token) << "after a restart";
    auto const erase = [](Control::State& state) { return state.erase_token("id"); };
    EXPECT_EQ(control->wait(erase), true);
    EXPECT_TRUE(control->snapshot().tokens->empty());
    EXPECT_EQ(control->wait(erase), false) << "there was none any more";
}

TEST(Control, AReplacedTokenIsNotKnownByItsOldSecret) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    for (auto const* sha256 : {"aa", "bb"})
        ASSERT_TRUE(control->wait([&](Control::State& state) {
            return state.save_token({"id", sha256, "admin", "", Time{}, {}});
        }));
    EXPECT_EQ(control->snapshot().tokens->size(), 1U);
    EXPECT_TRUE(control->snapshot().tokens->contains("bb"));
}

Time at(int seconds) {
    return Time(std::chrono::seconds(seconds));
}

PfState pf_at(char const* address, int seconds) {
    auto pf = make_igb_pf(address, "enp1s0");
    pf.observed_at = at(seconds);
    return pf;
}

KernelView pfs_at(int seconds) {
    KernelView view;
    view.pfs[example::pf0] = pf_at("0000:01:00.0", seconds);
    return view;
}

HypervisorView vms_at(int seconds, VmState state) {
    HypervisorView view;
    view.vms["a"].state = state;
    view.observed_at = at(seconds);
    return view;
}

// A full observation began at 5, and answers after others have read later.
TEST(Control, OfEachPfTheLaterReadingStays) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    auto const pfs = [&] { return control->snapshot().host->kernel.pfs; };
    PciAddress const added{0, 2, 0, 0};
    control->publish(pfs_at(10), example::pf0, {at(9), at(11)});
    KernelView late = pfs_at(6);
    late.pfs[added] = pf_at("0000:02:00.0", 6);
    control->publish(late, std::nullopt, {at(5), at(12)});
    EXPECT_EQ(pfs().at(example::pf0).observed_at, at(10));
    EXPECT_TRUE(pfs().contains(added));
    control->publish({}, std::nullopt, {at(7), at(12)});
    EXPECT_TRUE(pfs().contains(example::pf0)) << "it was there when that look had begun";
    EXPECT_FALSE(pfs().contains(added));
    control->publish(late, std::nullopt, {at(5), at(13)});
    EXPECT_FALSE(pfs().contains(added)) << "a later look did not find it";
    control->publish({}, example::pf0, {at(14), at(15)});
    EXPECT_FALSE(pfs().contains(example::pf0));
}

TEST(Control, ThatAPfCantBeReadIsSaidOfTheLaterReading) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    control->publish(pfs_at(10), example::pf0, {at(9), at(11)});
    auto hanging = pfs_at(6);
    hanging.pfs.at(example::pf0).stale = true;
    hanging.pfs.at(example::pf0).stuck = "it hangs";
    control->publish(hanging, std::nullopt, {at(5), at(12)});
    auto const pf = control->snapshot().host->kernel.pfs.at(example::pf0);
    EXPECT_EQ(pf.observed_at, at(10));
    EXPECT_TRUE(pf.stale);
    EXPECT_EQ(pf.stuck, "it hangs");
}

TEST(Control, OfLibvirtAndOfEachVmTheLaterReadingStays) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    auto const vms = [&] { return control->snapshot().host->hypervisor.vms; };
    control->publish(vms_at(10, VmState::running), std::nullopt, at(11));
    control->publish(vms_at(8, VmState::shut_off), std::nullopt, at(12));
    EXPECT_EQ(vms().at("a").state, VmState::running);
    control->publish(vms_at(9, VmState::shut_off), "a", at(12));
    EXPECT_EQ(vms().at("a").state, VmState::running);
    control->publish(vms_at(20, VmState::shut_off), "a", at(21));
    auto all = vms_at(19, VmState::running);
    all.vms["b"].state = VmState::running;
    control->publish(all, std::nullopt, at(22));
    EXPECT_EQ(vms().at("a").state, VmState::shut_off);
    EXPECT_TRUE(vms().contains("b"));
    control->publish(vms_at(23, VmState::running), std::nullopt, at(24));
    EXPECT_EQ(vms().at("a").state, VmState::running);
}

TEST(Control, AClockThatWasSetBackHoldsNothingUp) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    control->publish(pfs_at(3600), std::nullopt, {at(3600), at(3601)});
    control->publish(vms_at(3600, VmState::running), std::nullopt, at(3601));
    control->publish(pfs_at(10), std::nullopt, {at(10), at(11)});
    control->publish(vms_at(10, VmState::shut_off), std::nullopt, at(11));
    auto const host = control->snapshot().host;
    EXPECT_EQ(host->kernel.pfs.at(example::pf0).observed_at, at(10));
    EXPECT_EQ(host->hypervisor.vms.at("a").state, VmState::shut_off);
}

// Holds the control thread until it is destroyed: requests wait meanwhile.
class Held {
  public:
    explicit Held(Control& control) {
        std::promise<void> holds;
        auto held = holds.get_future();
        control.post([&holds, until = until_.get_future().share()](Control::State&) {
            holds.set_value();
            until.wait();
        });
        held.wait();
    }
    ~Held() { until_.set_value(); }
    Held(Held const&) = delete;
    Held& operator=(Held const&) = delete;

  private:
    std::promise<void> until_;
};

TEST(Control, ClientsTakeTurnsBehindItsOwnWork) {
    example::TemporaryFolder const folder;
    std::string order;
    auto const control = start(folder);
    auto const note = [&order](char who) {
        return [&order, who](Control::State&) { order += who; };
    };
    {
        Held const held(*control);
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(control->offer("greedy", note('g')));
        ASSERT_TRUE(control->offer("honest", note('h')));
        control->post(note('o'));
    }
    control->finish_offers();
    EXPECT_EQ(order, "oghgg");
}

TEST(Control, AClientsQueueIsBoundedAndOwnWorkIsNeverRefused) {
    example::TemporaryFolder const folder;
    std::size_t taken = 0;
    std::size_t done = 0;
    auto const count = [&done](Control::State&) { ++done; };
    auto const control = start(folder);
    {
        Held const held(*control);
        while (taken < 10'000 && control->offer("greedy", count)) ++taken;
        EXPECT_EQ(taken, FairQueueLimits{}.each);
        EXPECT_EQ(control->offer("greedy", count).error().problem, Problem::unavailable);
        EXPECT_TRUE(control->offer("honest", count)) << "its share is its own";
        for (std::size_t i = 0; i < 10 * taken; ++i) control->post(count);
    }
    control->finish_offers();
    EXPECT_EQ(done, 11 * taken + 1);
    EXPECT_TRUE(control->offer("greedy", count)) << "there is room again";
}

TEST(Control, AFullQueueKeepsAPlaceForWhoHasNothingInIt) {
    FairQueue<int> queue({.each = 4, .all = 6, .turn = 2});
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue.offer("a", i));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.offer("b", 10 + i));
    EXPECT_FALSE(queue.offer("b", 12));
    EXPECT_TRUE(queue.offer("c", 20));
    EXPECT_FALSE(queue.offer("c", 21));
    EXPECT_EQ(queue.take(), (std::vector{0, 10}));
    EXPECT_EQ(queue.take(), (std::vector{20, 1}));
    EXPECT_EQ(queue.take(), (std::vector{11, 2}));
    EXPECT_EQ(queue.take(), (std::vector{3}));
    EXPECT_TRUE(queue.empty());
}

TEST(Control, PublishesAndWakesOnlyWhenSomethingChanged) {
    example::TemporaryFolder const folder;
    int asked = 0, changes = 0;
    auto const control = start(folder);
    control->on_change([&] { ++changes; });
    control->watch(Deadline::max(), [&](Control::State&, Watch why) {
        ++asked;
        return why == Watch::expired;
    });
    auto const nothing = [](Control::State&) { return true; };
    control->wait(nothing);
    auto const before = control->snapshot();
    int const asked_before = asked, changes_before = changes;
    for (int i = 0; i < 3; ++i) control->wait(nothing);
    EXPECT_EQ(control->snapshot().desired, before.desired) << "the same object, not a copy";
    EXPECT_EQ(control->snapshot().runs, before.runs);
    EXPECT_EQ(std::pair(asked, changes), std::pair(asked_before, changes_before));
    control->wait([](Control::State& state) { return (state.set_run("a", PendingRun{}), true); });
    control->wait(nothing);
    EXPECT_TRUE(control->snapshot().runs->contains("a"));
    EXPECT_EQ(std::pair(asked, changes), std::pair(asked_before + 1, changes_before + 1));
    control->publish(pfs_at(1), std::nullopt, {at(1), at(1)});
    control->wait(nothing);
    control->wait(nothing);
    EXPECT_EQ(std::pair(asked, changes), std::pair(asked_before + 2, changes_before + 2));
    control->expire_watches();
}

// Who is told by a watch reads next, and must find what he was told of.
TEST(Control, AWatchFindsWhatReadersCanRead) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    std::promise<void> queued;
    control->post([&](Control::State&) { queued.get_future().wait(); });
    // All that follows is one turn.
    control->post([](Control::State& state) { state.set_run("a", PendingRun{}); });
    std::vector<bool> found, readable;
    auto const ready = [&](Control::State& state, Watch) {
        found.push_back(state.runs().contains("a"));
        readable.push_back(control->snapshot().runs->contains("a"));
        return true;
    };
    control->watch(Deadline::max(), ready);
    EXPECT_TRUE(control->watch({"client", {}}, Deadline::max(), ready));
    queued.set_value();
    control->finish_offers();
    EXPECT_EQ(found, (std::vector{true, true}));
    EXPECT_EQ(readable, found);
}

TEST(Control, AWatcherGoesWithItsClient) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    auto const gone = std::make_shared<std::atomic<bool>>(false);
    auto const asked = std::make_shared<int>(0);
    ASSERT_TRUE(control->watch({"a", gone}, Deadline::max(),
                               [asked](Control::State&, Watch) { return ++*asked, false; }));
    control->finish_offers();
    auto const before = *asked;
    EXPECT_GT(before, 0);
    *gone = true;
    for (int i = 0; i < 3; ++i) control->wait([](Control::State&) { return true; });
    EXPECT_EQ(*asked, before);
    EXPECT_EQ(asked.use_count(), 1) << "nothing of it is kept";
}

TEST(Control, AClientsWatchersAreBoundedWithoutThoseThatWent) {
    example::TemporaryFolder const folder;
    auto const gone = std::make_shared<std::atomic<bool>>(false);
    int crowded = 0;
    auto const control = start(folder);
    auto const watch = [&](char const* client) {
        ASSERT_TRUE(
            control->watch({client, gone}, Deadline::max(), [&crowded](Control::State&, Watch how) {
                if (how == Watch::crowded) ++crowded;
                return false;
            }));
        control->finish_offers();
    };
    for (std::size_t i = 0; i < watchers_each_max; ++i) watch("greedy");
    watch("honest");
    EXPECT_EQ(crowded, 0);
    watch("greedy");
    EXPECT_EQ(crowded, 1);
    *gone = true;
    ASSERT_TRUE(control->watch({"greedy", {}}, Deadline::max(), [&](Control::State&, Watch how) {
        if (how == Watch::crowded) ++crowded;
        return how == Watch::again;
    }));
    control->finish_offers();
    EXPECT_EQ(crowded, 1);
}

}  // namespace
}  // namespace vfmgr
