// SPDX-License-Identifier: Apache-2.0
// The process dies, or the power fails, at every point of every kind of operation: before, half way
// through and after each call of the kernel and of libvirt, and before and after each durable
// write. Recovery starts from each of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <iostream>

#include "tests/unit/vfmgr/engine/crash_bench.hpp"
#include "vfmgr/engine/restore.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct FaultTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};

    FaultTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
    }
};

struct CrashTest : FaultTest {
    LossyDisk disk;
    Watched watched{kernel, hypervisor, disk};
    bool boots_after_kill = false;

    std::string fault_after(Moment const& moment, DesiredState const& told) {
        disk.start_from(moment.disk);
        FakeKernel host{moment.host.kernel};
        host.overrides = moment.overrides;
        FakeHypervisor libvirt{host};
        libvirt.change([&](HypervisorView& view) { view = moment.host.hypervisor; });
        bool const boots = moment.power_failed || boots_after_kill;
        if (boots) {
            auto control = open_control(folder.path());
            EXPECT_TRUE(restore(host, *control, system_clock())) << moment.what;
        }
        Bench bench(host, libvirt, folder.path());
        if (!bench.recovered) return "recovery failed";
        auto const left = bench.engine.control().wait(
            [](Control::State& state) { return state.store.unfinished(); });
        if (!left || !left->empty()) return "an operation is left unfinished";
        if (moment.answered && bench.desired() != told) return "what was answered is forgotten";
        if (!host.overrides.empty()) return "a driver_override is left behind";
        return fault_of({host.view(), libvirt.view()}, bench.desired(), !boots);
    }

    // `told` is the operation's reported result: it stays, whatever happens next.
    void expect_well_after(std::vector<Moment> const& moments, DesiredState const& told,
                           std::size_t points, std::size_t points_least) {
        std::size_t violations = 0;
        for (auto const& moment : moments) {
            auto const fault = fault_after(moment, told);
            if (fault.empty()) continue;
            ++violations;
            ADD_FAILURE() << moment.what << ": " << fault;
        }
        EXPECT_GE(points, points_least);
        RecordProperty("crash_points", static_cast<int>(points));
        RecordProperty("violations", static_cast<int>(violations));
        std::cout << fmt::format("[  crashes ] {} points, {} of them different, {} violations\n",
                                 points, moments.size(), violations);
    }

    std::unique_ptr<Bench> bench_with_vfs(std::uint16_t count) {
        auto bench =
            std::make_unique<Bench>(watched, watched, folder.path(), AskResponder{}, system_clock(),
                                    TrustedNetdevs{}, FindOwners{}, bounds_for_holders());
        EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(count)}).state,
                  OperationState::succeeded);
        return bench;
    }
};

std::string only_attachment(Bench const& bench) {
    auto const desired = bench.desired();
    return desired.attachments.empty() ? "" : desired.attachments.begin()->first;
}

TEST_F(CrashTest, AChangeOfCountIsWell) {
    auto bench = bench_with_vfs(3);
    auto const moments = watched.moments_of([&] {
        EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)}).state,
                  OperationState::succeeded);
    });
    auto const told = bench->desired();
    bench.reset();
    expect_well_after(moments, told, watched.points(), 30);
}

TEST_F(CrashTest, AnAttachIsWell) {
    auto bench = bench_with_vfs(7);
    auto const moments = watched.moments_of(
        [&] { EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded); });
    auto const told = bench->desired();
    bench.reset();
    expect_well_after(moments, told, watched.points(), 150);
}

TEST_F(CrashTest, AnAttachOfTwoIsWell) {
    auto bench = bench_with_vfs(7);
    auto const moments = watched.moments_of([&] {
        EXPECT_EQ(bench->run(Attach{std::vector(2, ask())}).state, OperationState::succeeded);
    });
    auto const told = bench->desired();
    EXPECT_EQ(told.attachments.size(), 2U);
    bench.reset();
    expect_well_after(moments, told, watched.points(), 150);
}

TEST_F(CrashTest, ADetachOfTwoIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{std::vector(2, ask())});
    std::vector<std::string> ids;
    for (auto const& [id, one] : bench->desired().attachments) ids.push_back(id);
    ASSERT_EQ(ids.size(), 2U);
    auto const moments = watched.moments_of(
        [&] { EXPECT_EQ(bench->run(Detach{ids}).state, OperationState::succeeded); });
    auto const told = bench->desired();
    EXPECT_TRUE(told.attachments.empty());
    bench.reset();
    expect_well_after(moments, told, watched.points(), 200);
}

TEST_F(CrashTest, AnAttachToAnExternalHolderIsWell) {
    auto bench = bench_with_vfs(7);
    auto const moments = watched.moments_of(
        [&] { EXPECT_EQ(bench->run(Attach{ask_external()}).state, OperationState::succeeded); });
    auto const told = bench->desired();
    EXPECT_EQ(told.attachments.size(), 1U);
    bench.reset();
    expect_well_after(moments, told, watched.points(), 150);
}

TEST_F(CrashTest, ADetachFromAnExternalHolderIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask_external()});
    auto const moments = watched.moments_of([&] {
        EXPECT_EQ(bench->run(Detach{only_attachment(*bench)}).state, OperationState::succeeded);
    });
    auto const told = bench->desired();
    EXPECT_TRUE(told.attachments.empty());
    bench.reset();
    expect_well_after(moments, told, watched.points(), 100);
}

TEST_F(CrashTest, ARestoreForAnExternalHolderIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask_external()});
    auto const told = bench->desired();
    bench.reset();
    kernel.change([](KernelView& view) { view = igb_host(); });
    boots_after_kill = true;
    auto const moments = watched.moments_of([&] {
        auto control = open_control(folder.path());
        EXPECT_TRUE(restore(watched, *control, system_clock()));
    });
    expect_well_after(moments, told, watched.points(), 100);
}

// Dies with the old settings or with the new ones, in the kernel and in the store.
TEST_F(CrashTest, AChangeOfAnAttachmentIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask()});
    AttachmentPatch patch;
    patch.settings.set.mac = MacAddress{{0x02, 0, 0, 0, 0, 9}};
    patch.settings.set.trust = false;
    patch.settings.vlan = VlanPatch{{}, 3, {}};
    patch.allow_reset = true;
    auto const moments = watched.moments_of([&] {
        auto const changed = bench->run(ChangeAttachment{only_attachment(*bench), patch});
        EXPECT_EQ(changed.state, OperationState::succeeded) << changed.problem->detail;
    });
    auto const told = bench->desired();
    EXPECT_EQ(told.attachments.begin()->second.settings.mac, patch.settings.set.mac);
    bench.reset();
    expect_well_after(moments, told, watched.points(), 40);
}

TEST_F(CrashTest, ADetachIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask()});
    auto const moments = watched.moments_of([&] {
        EXPECT_EQ(bench->run(Detach{only_attachment(*bench)}).state, OperationState::succeeded);
    });
    auto const told = bench->desired();
    bench.reset();
    expect_well_after(moments, told, watched.points(), 150);
}

TEST_F(CrashTest, ADetachThatEndsInQuarantineIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask()});
    // The first kernel step of a detach is the reset.
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    auto const moments = watched.moments_of([&] {
        EXPECT_EQ(bench->run(Detach{only_attachment(*bench)}).state, OperationState::failed);
    });
    EXPECT_EQ(bench->desired().quarantine.size(), 1U);
    auto const told = bench->desired();
    bench.reset();
    expect_well_after(moments, told, watched.points(), 50);
}

TEST_F(CrashTest, ARestoreAtBootIsWell) {
    auto bench = bench_with_vfs(7);
    bench->run(Attach{ask()});
    auto const told = bench->desired();
    bench.reset();
    hypervisor.stop(vm1);
    kernel.change([](KernelView& view) { view = igb_host(); });
    boots_after_kill = true;
    auto const moments = watched.moments_of([&] {
        auto control = open_control(folder.path());
        EXPECT_TRUE(restore(watched, *control, system_clock()));
    });
    expect_well_after(moments, told, watched.points(), 100);
}

// Recovery is interrupted as well: here the one that undoes a whole attach.
TEST_F(CrashTest, ARecoveryIsWell) {
    auto bench = bench_with_vfs(7);
    auto const attach = watched.moments_of([&] { bench->run(Attach{ask()}); });
    bench.reset();
    auto const point = std::ranges::find_if(attach, [](Moment const& moment) {
        return moment.what.starts_with("after: attach VF") && !moment.power_failed;
    });
    ASSERT_NE(point, attach.end());
    disk.start_from(point->disk);
    FakeKernel host{point->host.kernel};
    FakeHypervisor libvirt{host};
    libvirt.change([&](HypervisorView& view) { view = point->host.hypervisor; });
    Watched recovery{host, libvirt, disk};
    DesiredState told;
    auto const moments = recovery.moments_of([&] {
        Bench after(recovery, recovery, folder.path());
        told = after.desired();
    });
    EXPECT_TRUE(told.attachments.empty());
    expect_well_after(moments, told, recovery.points(), 100);
}

// Each of the first `steps` steps of an attach fails once, in each way: everything is as before.
// Returns how many attaches failed.
std::size_t failures_undone(Bench& bench, FakeKernel& kernel, AttachmentSpec const& spec,
                            std::size_t steps) {
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    std::size_t failures = 0;
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after})
        for (std::size_t n = 0; n < steps; ++n) {
            kernel.fail_at = Fault{kernel.performed() + n, point};
            auto const attached = bench.run(Attach{spec});
            kernel.fail_at.reset();
            if (attached.state == OperationState::succeeded) {
                bench.run(Detach{bench.desired().attachments.begin()->first});
                continue;
            }
            ++failures;
            EXPECT_EQ(text(kernel.view()), text(clean)) << "step " << n;
            EXPECT_TRUE(bench.desired().attachments.empty());
            EXPECT_TRUE(bench.desired().quarantine.empty());
        }
    return failures;
}

TEST_F(FaultTest, EveryFailingStepOfAnAttachIsUndone) {
    Bench bench(kernel, hypervisor, folder.path());
    EXPECT_GE(failures_undone(bench, kernel, ask(), 9), 24U);
}

TEST_F(FaultTest, EveryFailingStepOfAnAttachToAnExternalHolderIsUndone) {
    Bench bench(kernel, hypervisor, folder.path(), {}, system_clock(), {}, {},
                bounds_for_holders());
    EXPECT_GE(failures_undone(bench, kernel, ask_external(), 10), 27U);
}

TEST_F(FaultTest, EveryFailingStepOfAChangeIsUndone) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(Attach{ask()});
    auto const attached = kernel.view();
    auto const before = bench.desired().attachments;
    AttachmentPatch patch;
    patch.settings.set.mac = MacAddress{{0x02, 0, 0, 0, 0, 9}};
    patch.settings.set.trust = false;
    patch.allow_reset = true;
    std::size_t failures = 0;
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after})
        for (std::size_t n = 0; n < 2; ++n) {
            kernel.fail_at = Fault{kernel.performed() + n, point};
            auto const changed = bench.run(ChangeAttachment{only_attachment(bench), patch});
            kernel.fail_at.reset();
            ASSERT_EQ(changed.state, OperationState::failed) << n;
            ++failures;
            EXPECT_EQ(text(kernel.view()), text(attached)) << "step " << n;
            EXPECT_EQ(bench.desired().attachments, before);
        }
    EXPECT_EQ(failures, 6U);
}

// A detach goes on from the actual state: temporary changes of the failed step are restored.
TEST_F(FaultTest, AFailingStepOfADetachLeavesNoneOfItsValues) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    std::size_t failures = 0;
    for (std::size_t n = 0; n < 9; ++n) {
        bench.run(Attach{ask()});
        auto const id = only_attachment(bench);
        kernel.fail_at = Fault{kernel.performed() + n, FaultPoint::halfway};
        auto const released = bench.run(Detach{id});
        kernel.fail_at.reset();
        failures += released.state == OperationState::failed ? 1 : 0;
        EXPECT_TRUE(kernel.overrides.empty()) << "step " << n;
        auto const view = kernel.view();
        for (auto const& vf : view.pfs.at(pf0).reset_methods)
            EXPECT_EQ(vf.methods, "flr bus") << "step " << n;
        auto const desired = bench.desired();
        for (auto const& [vf, quarantine] : desired.quarantine) bench.run(LiftQuarantine{vf});
    }
    EXPECT_GE(failures, 4U);
}

TEST_F(FaultTest, AHypervisorThatFailsIsUndone) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after}) {
        hypervisor.fail_at = Fault{hypervisor.performed(), point};
        EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::failed);
        hypervisor.fail_at.reset();
        EXPECT_EQ(text(kernel.view()), text(clean));
        EXPECT_TRUE(hypervisor.view().vms.at(vm1).config.empty());
        EXPECT_TRUE(hypervisor.view().vms.at(vm1).live.empty());
    }
}

}  // namespace
}  // namespace vfmgr
