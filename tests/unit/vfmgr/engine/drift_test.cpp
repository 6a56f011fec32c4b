// SPDX-License-Identifier: Apache-2.0
// Drift becomes events: one for each item, with its end; bursts are counted instead.
#include "vfmgr/engine/drift.hpp"

#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

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
    DriftWatch::Observed observed{{}, {pf0}, {pf0}};
    Deadline now{1h};
    std::uint64_t number = 0;

    std::vector<Event> events_of(std::vector<Drift> drift) {
        observed.drift = std::move(drift);
        auto events = watch.events_of(observed, Time{}, now, [this] { return ++number; });
        watch.commit();
        return events;
    }
};

TEST_F(DriftWatchTest, TellsEachThingOnceAndItsEnd) {
    auto const begun = events_of({of_mac("a")});
    ASSERT_EQ(begun.size(), 1U);
    EXPECT_EQ(begun[0].kind, EventKind::drift);
    EXPECT_EQ(begun[0].detail, "VF 2 has mac a");
    EXPECT_EQ(begun[0].vm, "vm1");
    EXPECT_EQ(begun[0].vf, 2);
    EXPECT_THAT(events_of({of_mac("a")}), IsEmpty());
    auto const changed = events_of({of_mac("b")});
    ASSERT_EQ(changed.size(), 1U);
    EXPECT_EQ(changed[0].detail, "VF 2 has mac b");
    auto const over = events_of({});
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(over[0].kind, EventKind::settled);
    EXPECT_EQ(over[0].because_of, changed[0].number);
    EXPECT_THAT(events_of({}), IsEmpty());
}

TEST_F(DriftWatchTest, SaysNothingOfAPfThatCantBeJudged) {
    events_of({of_mac("a")});
    observed.judged.clear();
    EXPECT_THAT(events_of({}), IsEmpty()) << "nobody knows that it is over";
    EXPECT_THAT(events_of({of_mac("b")}), IsEmpty());
    observed.judged = {pf0};
    EXPECT_THAT(events_of({of_mac("a")}), IsEmpty()) << "it was told";
    observed.managed.clear();
    observed.judged.clear();
    EXPECT_THAT(events_of({}), IsEmpty());
    observed.managed = observed.judged = {pf0};
    EXPECT_EQ(events_of({of_mac("a")}).size(), 1U) << "managed anew";
}

TEST_F(DriftWatchTest, TellsAgainWhatCouldNotBeKept) {
    observed.drift = {of_mac("a")};
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(watch.events_of(observed, Time{}, now, [this] { return ++number; }).size(), 1U);
    watch.commit();
    EXPECT_THAT(events_of({of_mac("a")}), IsEmpty());
}

TEST_F(DriftWatchTest, CountsAStorm) {
    std::size_t told = 0;
    for (int i = 0; i < 100; ++i) {
        told += events_of({of_mac(std::to_string(i))}).size();
        now += 100ms;
    }
    EXPECT_EQ(told, 10U);
    now += 60s;
    auto const counted = events_of({of_mac("99")});
    ASSERT_EQ(counted.size(), 1U);
    EXPECT_EQ(counted[0].detail, "VF 2 has mac 99; it changed 90 more times within a minute");
    EXPECT_EQ(events_of({of_mac("100")}).size(), 1U) << "a new minute";
}

// Attaching to one VM keeps the PF from being judged, and hides no loss from another VM.
TEST_F(DriftWatchTest, TellsALossWhileThePfIsBeingChanged) {
    Drift const loss{pf0, 2, "hostdev", "absent", "it is gone", "3f9c2b1d", "vm1"};
    observed.judged.clear();
    EXPECT_THAT(events_of({loss, of_mac("a")}), IsEmpty()) << "an operation is at that VM";
    observed.judged_attachments = {"3f9c2b1d"};
    auto const told = events_of({loss, of_mac("a")});
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, EventKind::lost);
    EXPECT_EQ(events_of({}).at(0).kind, EventKind::settled);
}

TEST_F(DriftWatchTest, ALossAfterAReturnIsAnother) {
    Drift const loss{pf0, 2, "hostdev", "absent", "it is gone", "3f9c2b1d", "vm1"};
    Attachment attachment;
    attachment.id = "3f9c2b1d";
    EXPECT_FALSE(watch.restored(attachment, Time{}));
    auto const first = events_of({loss});
    auto const over = watch.restored(attachment, Time{});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->kind, EventKind::settled);
    EXPECT_EQ(over->because_of, first.at(0).number);
    EXPECT_EQ(events_of({loss}).at(0).kind, EventKind::lost) << "nobody saw it in between";
    EXPECT_EQ(events_of({}).size(), 1U);
}

TEST_F(DriftWatchTest, NamesWhoElseOwnsTheVfs) {
    observed.owners[pf0] = {"/etc/a.link:4 makes 3 VFs of it"};
    EXPECT_EQ(events_of({of_mac("a")})[0].detail,
              "VF 2 has mac a; /etc/a.link:4 makes 3 VFs of it");
    EXPECT_EQ(events_of({})[0].detail, "no longer: VF 2 has mac a");
}

TEST_F(DriftWatchTest, TellsEveryLoss) {
    Drift const loss{pf0,        2,    "hostdev", "absent", "VF 2, attached to VM vm1, is gone",
                     "3f9c2b1d", "vm1"};
    std::size_t told = 0;
    for (int i = 0; i < 50; ++i) {
        told += events_of({loss}).size();
        told += events_of({}).size();
    }
    EXPECT_EQ(told, 100U);
}

// Runs on an engine that observes, with fakes.
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
        ASSERT_EQ(bench->run(Attach{spec}).state, OperationState::succeeded);
        bench->engine.start_observing();
    }
    std::vector<Event> events(std::uint16_t vf = 0) {
        return bench->engine.control()
            .wait([&](Control::State& state) { return state.store.events({pf0, vf}, {}); })
            .value()
            .items;
    }
    // Returns the newest event of that kind, as soon as there is one.
    Event await(EventKind kind) {
        std::promise<Event> promise;
        auto future = promise.get_future();
        bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
            auto const all = state.store.events({pf0, 0}, {}).value().items;
            auto const event = std::ranges::find(all, kind, &Event::kind);
            if (event == all.end()) return false;
            promise.set_value(*event);
            return true;
        });
        bench->engine.observe_again();
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
    EXPECT_THAT(drift.detail, HasSubstr("has mac 02:00:00:00:00:99 instead of mac"));
    EXPECT_EQ(drift.vm, "vm1");
    EXPECT_EQ(drift.attachment, bench->desired().attachments.begin()->first);
    set_mac(mac);
    EXPECT_EQ(await(EventKind::settled).because_of, drift.number);
}

// Reading files takes time, and drift may last for days.
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
              "VF 0, attached to VM vm1, is gone from that VM, which is running");
}

TEST_F(DriftTest, IsNoneOfWhatVfmgrDoesItself) {
    for (int round = 0; round < 5; ++round) {
        auto const attachment = bench->desired().attachments.begin()->first;
        bench->engine.observe_again();
        ASSERT_EQ(bench->run(Detach{attachment}).state, OperationState::succeeded);
        bench->engine.observe_again();
        auto spec = ask();
        spec.vf = 0;
        ASSERT_EQ(bench->run(Attach{spec}).state, OperationState::succeeded);
    }
    auto const all = kinds();
    EXPECT_EQ(std::ranges::count(all, "attached"), 6);
    EXPECT_EQ(std::ranges::count(all, "detached"), 5);
    EXPECT_EQ(all.size(), 12U) << "and pf_configured";
}

// Between two steps of an operation the host is neither as it was nor as it will be.
TEST_F(DriftTest, IsNothingOfWhatIsBeingChanged) {
    bench->run(Detach{bench->desired().attachments.begin()->first});
    bool seen_half_done = false;
    kernel.on_perform = [&](KernelStep const& step) {
        if (!std::holds_alternative<BindVfs>(step)) return;
        // The operation waits here, so the observer observes: twice, so that one is whole.
        have_looked(bench->engine, kernel, 2);
        seen_half_done = kernel.view().pfs.at(pf0).vfs.size() == 4;
    };
    auto spec = spec_with_vfs(4);
    spec.vf_driver = "vfio-pci";
    ASSERT_EQ(bench->run(ReplacePfSpec{pf0, spec}).state, OperationState::succeeded);
    EXPECT_TRUE(seen_half_done);
    EXPECT_THAT(kinds(), testing::Not(testing::Contains("drift")));
}

TEST_F(DriftTest, TheHistoryTellsAnAttachmentFromEndToEnd) {
    auto const attachment = bench->desired().attachments.begin()->first;
    bench->guest_reports(Verdict::pass);
    bench->run(Verify{attachment, 5});
    auto const released = bench->run(Detach{attachment});
    EXPECT_THAT(kinds(), ElementsAre("detached", "verified", "attached", "pf_configured"));
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
    auto const emit = [&, told = false](std::vector<Event> const& events) mutable {
        bool const drifted = std::ranges::count(events, EventKind::drift, &Event::kind) > 0;
        if (drifted && !std::exchange(told, true))
            looks.set_value(static_cast<unsigned long>(kernel.observed() - before));
    };
    ASSERT_TRUE(bench->engine.on_events(emit, 0));
    bench->engine.start_observing();
    EXPECT_EQ(future.get(), 1U) << "of recover()";
    ASSERT_TRUE(bench->engine.on_events({}, 0));
}

TEST_F(DriftTest, NumbersGoOnAfterAStart) {
    auto const last = events().front().number;
    bench.reset();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    bench->run(Detach{bench->desired().attachments.begin()->first});
    EXPECT_GT(events().front().number, last);
}

}  // namespace
}  // namespace vfmgr
