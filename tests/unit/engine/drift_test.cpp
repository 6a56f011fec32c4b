// SPDX-License-Identifier: Apache-2.0
// Drift becomes events: once for each thing, with its end, and storms of it are counted.
#include "vfmgr/engine/drift.hpp"

#include <gmock/gmock.h>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Drift of_mac(std::string found) {
    return {pf0, 2, "mac", found, "VF 2 has mac " + found, "3f9c2b1d", "vm1"};
}

struct DriftWatchTest : testing::Test {
    DriftWatch watch;
    DriftWatch::Seen seen{{}, {pf0}, {pf0}};
    Deadline now{1h};
    std::uint64_t number = 0;

    std::vector<HistoryEvent> look(std::vector<Drift> drift) {
        seen.drift = std::move(drift);
        auto events = watch.look(seen, Time{}, now, [this] { return ++number; });
        watch.commit();
        return events;
    }
};

TEST_F(DriftWatchTest, TellsEachThingOnceAndItsEnd) {
    auto const begun = look({of_mac("a")});
    ASSERT_EQ(begun.size(), 1U);
    EXPECT_EQ(begun[0].kind, EventKind::drift);
    EXPECT_EQ(begun[0].detail, "VF 2 has mac a");
    EXPECT_EQ(begun[0].vm_name, "vm1");
    EXPECT_EQ(begun[0].vf, 2);
    EXPECT_THAT(look({of_mac("a")}), IsEmpty());
    auto const changed = look({of_mac("b")});
    ASSERT_EQ(changed.size(), 1U);
    EXPECT_EQ(changed[0].detail, "VF 2 has mac b");
    auto const over = look({});
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(over[0].kind, EventKind::settled);
    EXPECT_EQ(over[0].because_of, changed[0].number);
    EXPECT_THAT(look({}), IsEmpty());
}

TEST_F(DriftWatchTest, SaysNothingOfAPfThatCantBeJudged) {
    look({of_mac("a")});
    seen.judged.clear();
    EXPECT_THAT(look({}), IsEmpty()) << "nobody knows that it is over";
    EXPECT_THAT(look({of_mac("b")}), IsEmpty());
    seen.judged = {pf0};
    EXPECT_THAT(look({of_mac("a")}), IsEmpty()) << "it was told";
    seen.managed.clear();
    seen.judged.clear();
    EXPECT_THAT(look({}), IsEmpty());
    seen.managed = seen.judged = {pf0};
    EXPECT_EQ(look({of_mac("a")}).size(), 1U) << "managed anew";
}

TEST_F(DriftWatchTest, TellsAgainWhatCouldNotBeKept) {
    seen.drift = {of_mac("a")};
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(watch.look(seen, Time{}, now, [this] { return ++number; }).size(), 1U);
    watch.commit();
    EXPECT_THAT(look({of_mac("a")}), IsEmpty());
}

TEST_F(DriftWatchTest, CountsAStorm) {
    std::size_t told = 0;
    for (int i = 0; i < 100; ++i) {
        told += look({of_mac(std::to_string(i))}).size();
        now += 100ms;
    }
    EXPECT_EQ(told, 10U);
    now += 60s;
    auto const counted = look({of_mac("99")});
    ASSERT_EQ(counted.size(), 1U);
    EXPECT_EQ(counted[0].detail, "VF 2 has mac 99; it changed 90 times more within a minute");
    EXPECT_EQ(look({of_mac("100")}).size(), 1U) << "a new minute";
}

// Lending to one VM keeps the PF from being judged, and takes nothing from another.
TEST_F(DriftWatchTest, TellsALossWhileThePfIsBeingChanged) {
    Drift const loss{pf0, 2, "hostdev", "absent", "it is gone", "3f9c2b1d", "vm1"};
    seen.judged.clear();
    EXPECT_THAT(look({loss, of_mac("a")}), IsEmpty()) << "an operation is at that VM";
    seen.judged_leases = {"3f9c2b1d"};
    auto const told = look({loss, of_mac("a")});
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, EventKind::lost);
    EXPECT_EQ(look({}).at(0).kind, EventKind::settled);
}

TEST_F(DriftWatchTest, ALossAfterAReturnIsAnother) {
    Drift const loss{pf0, 2, "hostdev", "absent", "it is gone", "3f9c2b1d", "vm1"};
    Attachment lease;
    lease.id = "3f9c2b1d";
    EXPECT_FALSE(watch.given_back(lease, Time{}));
    auto const first = look({loss});
    auto const over = watch.given_back(lease, Time{});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->kind, EventKind::settled);
    EXPECT_EQ(over->because_of, first.at(0).number);
    EXPECT_EQ(look({loss}).at(0).kind, EventKind::lost) << "nobody saw it in between";
    EXPECT_EQ(look({}).size(), 1U);
}

TEST_F(DriftWatchTest, NamesWhoElseOwnsTheVfs) {
    seen.owners[pf0] = {"/etc/a.link:4 makes 3 VFs of it"};
    EXPECT_EQ(look({of_mac("a")})[0].detail, "VF 2 has mac a; /etc/a.link:4 makes 3 VFs of it");
    EXPECT_EQ(look({})[0].detail, "no more: VF 2 has mac a");
}

TEST_F(DriftWatchTest, TellsEveryLoss) {
    Drift const loss{pf0,        2,    "hostdev", "absent", "VF 2, lent to VM vm1, is gone",
                     "3f9c2b1d", "vm1"};
    std::size_t told = 0;
    for (int i = 0; i < 50; ++i) {
        told += look({loss}).size();
        told += look({}).size();
    }
    EXPECT_EQ(told, 100U);
}

// On an engine that observes, with fakes.
struct DriftTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        auto spec = ask();
        spec.vf = 0;
        ASSERT_EQ(bench->run(Lend{spec}).state, OperationState::succeeded);
        bench->engine.start_observing();
    }
    std::vector<HistoryEvent> events(std::uint16_t vf = 0) {
        return bench->engine.control()
            .wait([&](Control::State& state) { return state.store.events({pf0, vf}); })
            .value();
    }
    // The newest event of that kind, as soon as there is one.
    HistoryEvent await(EventKind kind) {
        std::promise<HistoryEvent> promise;
        auto future = promise.get_future();
        bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
            auto const all = state.store.events({pf0, 0}).value();
            auto const event = std::ranges::find(all, kind, &HistoryEvent::kind);
            if (event == all.end()) return false;
            promise.set_value(*event);
            return true;
        });
        bench->engine.look_again();
        return future.get();
    }
    [[nodiscard]] std::vector<std::string> kinds() {
        std::vector<std::string> all;
        for (auto const& event : events()) all.emplace_back(enum_name(event.kind));
        return all;
    }
    void watch_with(FindOwners const& find_owners) {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder(),
                                        system_clock(), TrustedNetdevs(), find_owners);
        bench->engine.start_observing();
    }
    void set_mac(MacAddress const& mac) {
        kernel.change([&](KernelView& view) { view.pfs.at(pf0).vfs.at(0).settings.mac = mac; });
    }
};

TEST_F(DriftTest, OfSomebodyElsesWriteIsAnEventWithItsEnd) {
    auto const mac = *kernel.view().pfs.at(pf0).vfs.at(0).settings.mac;
    set_mac(MacAddress::parse("02:00:00:00:00:99").value());
    auto const drift = await(EventKind::drift);
    EXPECT_THAT(drift.detail, HasSubstr("has mac 02:00:00:00:00:99, and mac"));
    EXPECT_EQ(drift.vm_name, "vm1");
    EXPECT_EQ(drift.attachment, bench->desired().attachments.begin()->first);
    set_mac(mac);
    EXPECT_EQ(await(EventKind::settled).because_of, drift.number);
}

// Reading files takes its time, and drift may last for days.
TEST_F(DriftTest, LooksForOwnersWhenThereIsSomethingNew) {
    std::atomic<int> asked = 0;
    watch_with([&](std::vector<PfInfo> const& pfs) {
        ++asked;
        OwnersOfPfs owners;
        for (auto const& pf : pfs) owners[pf.pci] = {"a file makes VFs of " + pf.ifname};
        return owners;
    });
    have_looked(bench->engine, kernel);
    EXPECT_EQ(asked, 0);
    set_mac(MacAddress::parse("02:00:00:00:00:99").value());
    EXPECT_THAT(await(EventKind::drift).detail, HasSubstr("; a file makes VFs of enp1s0"));
    have_looked(bench->engine, kernel);
    EXPECT_EQ(asked, 1);
    set_mac(MacAddress::parse("02:00:00:00:00:98").value());
    have_looked(bench->engine, kernel);
    EXPECT_EQ(asked, 2);
}

TEST_F(DriftTest, OfALossNamesTheVm) {
    kernel.change([](KernelView& view) {
        view.pfs.at(pf0).vfs.clear();
        view.pfs.at(pf0).info.num_vfs = 0;
    });
    EXPECT_EQ(await(EventKind::lost).detail,
              "VF 0, lent to VM vm1, is gone from that VM, which runs");
}

TEST_F(DriftTest, IsNoneOfWhatVfmgrDoesItself) {
    for (int round = 0; round < 5; ++round) {
        auto const lease = bench->desired().attachments.begin()->first;
        bench->engine.look_again();
        ASSERT_EQ(bench->run(Release{lease}).state, OperationState::succeeded);
        bench->engine.look_again();
        auto spec = ask();
        spec.vf = 0;
        ASSERT_EQ(bench->run(Lend{spec}).state, OperationState::succeeded);
    }
    auto const all = kinds();
    EXPECT_EQ(std::ranges::count(all, "lent"), 6);
    EXPECT_EQ(std::ranges::count(all, "returned"), 5);
    EXPECT_EQ(all.size(), 12U) << "and pf_configured";
}

// Between two steps of an operation the host is neither as it was nor as it will be.
TEST_F(DriftTest, IsNothingOfWhatIsBeingChanged) {
    bench->run(Release{bench->desired().attachments.begin()->first});
    bool seen_half_done = false;
    kernel.on_perform = [&](KernelStep const& step) {
        if (!std::holds_alternative<BindVfs>(step)) return;
        // The operation waits here, so it is the observer who looks: twice, so that once is whole.
        have_looked(bench->engine, kernel, 2);
        seen_half_done = kernel.view().pfs.at(pf0).vfs.size() == 4;
    };
    auto spec = spec_with_vfs(4);
    spec.vf_driver = "vfio-pci";
    ASSERT_EQ(bench->run(ReplacePfSpec{pf0, spec}).state, OperationState::succeeded);
    EXPECT_TRUE(seen_half_done);
    EXPECT_THAT(kinds(), testing::Not(testing::Contains("drift")));
}

TEST_F(DriftTest, TheHistoryTellsALeaseFromEndToEnd) {
    auto const lease = bench->desired().attachments.begin()->first;
    bench->guest_reports(Verdict::pass);
    bench->run(Verify{lease, 5});
    auto const released = bench->run(Release{lease});
    EXPECT_THAT(kinds(), ElementsAre("returned", "verified", "lent", "pf_configured"));
    auto const all = events();
    EXPECT_EQ(all[0].certificate, released.certificate);
    EXPECT_EQ(all[0].operation, released.id);
    EXPECT_THAT(all[1].detail, HasSubstr("pass, run "));
    EXPECT_THAT(all[2].detail, HasSubstr("vlan 100"));
    EXPECT_EQ(all[3].detail, "mode manage, 2 VFs");
    EXPECT_EQ(events(1).size(), 1U) << "of the other VF only its PF's";
    std::vector<std::uint64_t> numbers;
    for (auto const& event : all) numbers.push_back(event.number);
    EXPECT_TRUE(std::ranges::is_sorted(numbers, std::greater{}));
}

TEST_F(DriftTest, WhatTheStartHasSeenIsJudgedWithoutASecondLook) {
    bench.reset();
    set_mac(MacAddress::parse("02:00:00:00:00:99").value());
    auto const before = kernel.observed();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    std::promise<unsigned long> looks;
    auto future = looks.get_future();
    bench->engine.on_event([&, told = false](HistoryEvent const& event) mutable {
        if (event.kind == EventKind::drift && !std::exchange(told, true))
            looks.set_value(static_cast<unsigned long>(kernel.observed() - before));
    });
    bench->engine.start_observing();
    EXPECT_EQ(future.get(), 1U) << "of recover()";
    bench->engine.on_event({});
}

TEST_F(DriftTest, NumbersGoOnAfterAStart) {
    auto const last = events().front().number;
    bench.reset();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    bench->run(Release{bench->desired().attachments.begin()->first});
    EXPECT_GT(events().front().number, last);
}

}  // namespace
}  // namespace vfmgr
