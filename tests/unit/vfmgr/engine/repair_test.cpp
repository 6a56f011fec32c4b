// SPDX-License-Identifier: Apache-2.0
// Mode enforce: another program's changes to a PF and its VMs are undone, and reported.
#include "vfmgr/engine/repair.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::HasSubstr;

Deadline const noon{12h};

TEST(RepairPaceTest, WaitsLongerEachTime) {
    RepairPace pace;
    auto now = noon;
    std::vector<std::chrono::seconds> waits;
    for (int i = 0; i < 9; ++i) {
        pace.begun("pf");
        EXPECT_FALSE(pace.may_begin("pf", now)) << "it goes on";
        EXPECT_FALSE(pace.ended("pf", {}, now));
        auto const ended = now;
        while (!pace.may_begin("pf", now)) now += 1s;
        waits.push_back(std::chrono::duration_cast<std::chrono::seconds>(now - ended));
    }
    EXPECT_THAT(waits, testing::ElementsAre(1s, 2s, 4s, 8s, 16s, 30s, 30s, 30s, 30s));
    EXPECT_TRUE(pace.may_begin("another", noon));
}

TEST(RepairPaceTest, BeginsAnewAfterACalmMinute) {
    RepairPace pace;
    auto now = noon;
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(pace.ended("pf", {}, now));
    now += 16s + 61s;
    EXPECT_FALSE(pace.ended("pf", {}, now));
    EXPECT_TRUE(pace.may_begin("pf", now + 1s));
    EXPECT_FALSE(pace.may_begin("pf", now));
    pace.forget_old(now + 2s);
    EXPECT_FALSE(pace.may_begin("pf", now)) << "that is not old";
    pace.forget_old(now + 62s);
    EXPECT_TRUE(pace.may_begin("pf", now));
}

TEST(RepairPaceTest, TellsAFailureOnceAndForgetsItWhenAllIsRight) {
    RepairPace pace;
    EXPECT_TRUE(pace.ended("pf", "no", noon));
    EXPECT_FALSE(pace.ended("pf", "no", noon));
    EXPECT_TRUE(pace.ended("pf", "never", noon));
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(pace.ended("pf", "never", noon));
    EXPECT_FALSE(pace.may_begin("pf", noon + 599s));
    EXPECT_TRUE(pace.may_begin("pf", noon + 600s));
    pace.all_right("pf");
    EXPECT_TRUE(pace.may_begin("pf", noon));
    EXPECT_TRUE(pace.ended("pf", "never", noon));
    EXPECT_FALSE(pace.ended("pf", {}, noon));
    pace.all_right("pf");
    EXPECT_FALSE(pace.may_begin("pf", noon)) << "who breaks it again is waited for";
}

// Another writer at the same time makes it fail in other ways, which is no reason for a long wait.
TEST(RepairPaceTest, WaitsForMinutesOnlyWhereItFailsTheSameWay) {
    RepairPace pace;
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(pace.ended("pf", "way " + std::to_string(i), noon));
        EXPECT_FALSE(pace.ended("pf", {}, noon));
    }
    EXPECT_TRUE(pace.ended("pf", "never", noon));
    EXPECT_FALSE(pace.may_begin("pf", noon + 29s));
    EXPECT_TRUE(pace.may_begin("pf", noon + 30s));
}

TEST(RepairPaceTest, ARefusalHoldsNothingUpAndIsToldOnceAMinute) {
    RepairPace pace;
    EXPECT_TRUE(pace.refused("pf", "VF 0 is in vm1", noon));
    EXPECT_TRUE(pace.failed("pf"));
    EXPECT_TRUE(pace.may_begin("pf", noon)) << "what can be done is done at once";
    EXPECT_FALSE(pace.refused("pf", "VF 0 is in vm1", noon + 1s));
    EXPECT_FALSE(pace.refused("pf", "VF 1 is in vm2", noon + 59s)) << "it changes all the time";
    EXPECT_TRUE(pace.refused("pf", "VF 1 is in vm2", noon + 60s));
    for (auto later = 60s; later < 10min; later += 30s) {
        pace.forget_old(noon + later);
        EXPECT_FALSE(pace.refused("pf", "VF 1 is in vm2", noon + later)) << "it was told";
    }
    pace.all_right("pf");
    EXPECT_FALSE(pace.failed("pf"));
}

TEST(RepairPaceTest, QueuesUpWhereNoLookFindsAnythingAtRest) {
    RepairPace pace;
    EXPECT_FALSE(pace.kept_waiting("pf", noon));
    EXPECT_FALSE(pace.kept_waiting("pf", noon + 4s));
    EXPECT_TRUE(pace.kept_waiting("pf", noon + 5s));
    pace.observed_at_rest("pf");
    EXPECT_FALSE(pace.kept_waiting("pf", noon + 6s));
    EXPECT_FALSE(pace.kept_waiting("another", noon + 6s));
    EXPECT_TRUE(pace.kept_waiting("pf", noon + 11s));
}

struct RepairTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    FakeClock clock;
    std::unique_ptr<Bench> bench;
    std::string attachment;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        auto pf = spec_with_vfs(2);
        pf.mode = PfMode::enforce;
        bench->run(ReplacePfSpec{pf0, pf});
        auto spec = ask();
        spec.vf = 0;
        ASSERT_EQ(bench->run(Attach{spec}).state, OperationState::succeeded);
        attachment = bench->desired().attachments.begin()->first;
        bench->engine.start_observing();
    }
    std::vector<Event> events() {
        return bench->engine.control()
            .wait([&](Control::State& state) { return state.store.events({pf0, 0}, {}); })
            .value()
            .items;
    }
    // Returns the newest event of that kind with these words, as soon as there is one.
    Event await(EventKind kind, std::string const& words, std::uint64_t after = 0) {
        std::promise<Event> promise;
        auto future = promise.get_future();
        bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
            auto const all = state.store.events({pf0, 0}, {}).value().items;
            for (auto const& event : all) {
                if (event.number <= after || event.kind != kind ||
                    event.detail.find(words) == std::string::npos)
                    continue;
                promise.set_value(event);
                return true;
            }
            return false;
        });
        bench->engine.observe_at_once();
        return future.get();
    }
    // As `echo 0 >sriov_numvfs` under a running VM.
    void steal() {
        kernel.change([](KernelView& view) {
            view.pfs.at(pf0).vfs.clear();
            view.pfs.at(pf0).info.num_vfs = 0;
        });
        hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).live.clear(); });
    }
    [[nodiscard]] VfState vf() const { return kernel.view().pfs.at(pf0).vfs.at(0); }
};

TEST_F(RepairTest, AStolenVfIsBackInItsVm) {
    auto const before = vf();
    steal();
    auto const back = await(EventKind::repaired, "VM vm1");
    EXPECT_EQ(back.attachment, attachment);
    ASSERT_TRUE(back.because_of);
    ASSERT_TRUE(back.operation);
    auto const done = bench->ended(*back.operation);
    EXPECT_EQ(done.kind, OperationKind::restore);
    EXPECT_EQ(done.subject, "/v1/attachments/" + attachment);
    EXPECT_EQ(vf().settings, before.settings);
    EXPECT_EQ(vf().driver, before.driver);
    EXPECT_TRUE(
        has_hostdev(hypervisor.view().vms.at(vm1).live, hostdev_alias(attachment), vf().pci));
    EXPECT_THAT(await(EventKind::repaired, "create 2 VFs").detail, HasSubstr("done: "));
    auto const lost = await(EventKind::lost, "VM vm1");
    EXPECT_EQ(await(EventKind::settled, "VM vm1").because_of, lost.number);
    EXPECT_EQ(back.because_of, lost.number);
}

TEST_F(RepairTest, WhatIsBackIsProvedAgain) {
    bench->run(Detach{attachment});
    bench->guest_reports(Verdict::pass);
    auto spec = ask();
    spec.vf = 0;
    spec.verify = VerifyMode::background;
    ASSERT_EQ(bench->run(Attach{spec}).state, OperationState::succeeded);
    auto const first = await(EventKind::verified, "pass");
    bench->guest_reports(Verdict::pass);
    steal();
    EXPECT_GT(await(EventKind::verified, "pass", first.number).number,
              await(EventKind::repaired, "VM vm1").number);
}

// Regardless of the mode: while the filter is open the VM reaches all of the host.
TEST_F(RepairTest, AFlushedFilterIsBackInModeManageToo) {
    auto pf = spec_with_vfs(2);
    pf.mode = PfMode::manage;
    bench->run(ReplacePfSpec{pf0, pf});
    auto const before = kernel.view().pfs.at(pf0).interfaces;
    ASSERT_FALSE(before.at(1).closed.empty());
    kernel.change([](KernelView& view) {
        for (auto& interface : view.pfs.at(pf0).interfaces) {
            interface.filtered.clear();
            interface.closed.clear();
        }
        view.pfs.at(pf0).vfs.at(0).settings.trust = false;
    });
    bench->engine.observe_at_once();
    std::promise<void> back;
    bench->engine.control().watch(Deadline::max(), [&](Control::State&, Watch) {
        auto const interfaces = kernel.view().pfs.at(pf0).interfaces;
        if (interfaces != before) return false;
        back.set_value();
        return true;
    });
    ASSERT_EQ(back.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(vf().settings.trust, false) << "that is somebody else's, and no danger";
}

TEST_F(RepairTest, ASettingIsRestoredWhileTheVmRuns) {
    auto const mac = vf().settings.mac;
    kernel.change([&](KernelView& view) {
        view.pfs.at(pf0).vfs.at(0).settings.mac = MacAddress::parse("02:00:00:00:00:99").value();
    });
    auto const back = await(EventKind::repaired, "mac");
    EXPECT_EQ(vf().settings.mac, mac);
    EXPECT_TRUE(
        has_hostdev(hypervisor.view().vms.at(vm1).live, hostdev_alias(attachment), vf().pci));
    EXPECT_THAT(await(EventKind::drift, "02:00:00:00:00:99").number, *back.because_of);
}

TEST_F(RepairTest, WhatCantBeRepairedIsReportedOnce) {
    hypervisor.add(make_vm("vm2", vm2));
    ASSERT_TRUE(hypervisor.start(vm2));
    hypervisor.change([&](HypervisorView& view) {
        view.vms.at(vm2).live = {{kernel.view().pfs.at(pf0).vfs.at(1).pci, "hostdev0"}};
    });
    kernel.change(
        [](KernelView& view) { view.pfs.at(pf0).vfs.erase(view.pfs.at(pf0).vfs.begin()); });
    auto const failed = await(EventKind::repair_failed, "VF 1 is in the running VM vm2");
    EXPECT_FALSE(failed.vf);
    have_looked(bench->engine, kernel);
    auto const all = events();
    EXPECT_EQ(std::ranges::count(all, EventKind::repair_failed, &Event::kind), 1);
}

TEST_F(RepairTest, WhatCantBeHelpedHoldsNothingElseUp) {
    auto const mac = vf().settings.mac;
    kernel.change([](KernelView& view) { view.pfs.at(pf0).vfs.pop_back(); });
    await(EventKind::repair_failed, "VF 0 is in the running VM vm1");
    kernel.change([&](KernelView& view) {
        view.pfs.at(pf0).vfs.at(0).settings.mac = MacAddress::parse("02:00:00:00:00:99").value();
    });
    await(EventKind::repaired, "mac");
    EXPECT_EQ(vf().settings.mac, mac);
}

// Restored to its VM at once, it would keep the other VFs from being created.
TEST_F(RepairTest, AVfGoesBackWhenAllAreThere) {
    bench.reset();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    auto const right = vf().settings.mac;
    kernel.change([](KernelView& view) {
        view.pfs.at(pf0).vfs.at(0).settings.mac = MacAddress::parse("02:00:00:00:00:99").value();
    });
    bench->engine.start_observing();
    await(EventKind::repaired, "mac");
    EXPECT_EQ(vf().settings.mac, right);
    hypervisor.change([](HypervisorView& view) {
        view.vms.at(vm1).live.clear();
        view.vms.at(vm1).free_pcie_ports = 1;
    });
    kernel.change([](KernelView& view) {
        view.pfs.at(pf0).vfs.at(0).holders.clear();
        view.pfs.at(pf0).vfs.pop_back();
    });
    await(EventKind::lost, "VM vm1");
    have_looked(bench->engine, kernel);
    EXPECT_TRUE(hypervisor.view().vms.at(vm1).live.empty()) << "the others are to be made first";
    clock.advance(1s);
    await(EventKind::repaired, "VM vm1");
    EXPECT_EQ(kernel.view().pfs.at(pf0).vfs.size(), 2U);
}

TEST_F(RepairTest, ModeManageOnlyTells) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    auto const performed = kernel.performed();
    steal();
    await(EventKind::lost, "VM vm1");
    have_looked(bench->engine, kernel);
    EXPECT_EQ(kernel.performed(), performed);
}

}  // namespace
}  // namespace vfmgr
