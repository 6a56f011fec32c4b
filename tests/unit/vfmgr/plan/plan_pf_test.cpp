// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

PfSpec want_vfs(std::uint16_t count) {
    auto spec = desired().pfs[pf_address].spec;
    spec.num_vfs = count;
    return spec;
}

TEST(PlanPf, CreatesVfs) {
    auto const plan = plan_pf(host(0), desired(), pf_address, want_vfs(7)).value();
    EXPECT_EQ(plan.steps, (std::vector<Step>{SetNumVfs{pf_address, 7}}));
    EXPECT_THAT(plan.blast_radius, IsEmpty());
}

TEST(PlanPf, NewVfsGetTheDriverThatIsWanted) {
    auto requested = want_vfs(3);
    requested.vf_driver = "vfio-pci";
    EXPECT_EQ(
        plan_pf(host(0), desired(), pf_address, requested).value().steps,
        (std::vector<Step>{SetNumVfs{pf_address, 3}, BindVfs{pf_address, {0, 1, 2}, "vfio-pci"}}));
    requested.num_vfs = 0;
    EXPECT_EQ(plan_pf(host(3), desired(), pf_address, requested).value().steps,
              (std::vector<Step>{SetNumVfs{pf_address, 0}}));
}

TEST(PlanPf, UnusedVfsGetTheDriverThatIsWantedUsedOnesKeepTheirs) {
    auto requested = want_vfs(7);
    requested.vf_driver = "vfio-pci";
    auto view = host(7);
    auto& vfs = view.kernel.pfs[pf_address].vfs;
    vfs[1].driver = "vfio-pci";
    vfs[2].driver = "igbvf";
    vfs[3].holders = {{812, "qemu-system-x86"}};
    auto now = desired();
    now.quarantine[VfId{pf_address, 4}] = {};
    EXPECT_EQ(plan_pf(view, now, pf_address, requested).value().steps,
              (std::vector<Step>{BindVfs{pf_address, {0, 2, 5, 6}, "vfio-pci"}}));
    view.hypervisor.stale = true;
    auto const blind = plan_pf(view, now, pf_address, requested).value();
    EXPECT_THAT(blind.steps, IsEmpty());
    ASSERT_EQ(blind.notes.size(), 1U);
    EXPECT_THAT(blind.notes[0], HasSubstr("keep their drivers"));
}

TEST(PlanPf, APfInABondGetsVfs) {
    auto view = host(0);
    view.kernel.pfs[pf_address].info.controller = "bond0";
    EXPECT_EQ(plan_pf(view, desired(), pf_address, want_vfs(7)).value().steps.size(), 1U);
}

TEST(PlanPf, NothingToDoIsAnEmptyPlan) {
    EXPECT_THAT(plan_pf(host(7), desired(), pf_address, want_vfs(7)).value().steps, IsEmpty());
}

TEST(PlanPf, NamesWhatAChangeOfCountRemoves) {
    auto const plan = plan_pf(host(7), desired(), pf_address, want_vfs(4)).value();
    ASSERT_EQ(plan.blast_radius.size(), 1U);
    EXPECT_THAT(plan.blast_radius[0], HasSubstr("all 7 VFs of enp1s0"));
}

TEST(PlanPf, RefusesMoreThanThePfHas) {
    auto const error = plan_pf(host(0), desired(), pf_address, want_vfs(8)).error();
    EXPECT_EQ(error.problem, Problem::limit_exceeded);
    EXPECT_EQ(error.detail, "enp1s0 (0000:01:00.0) allows 7 VFs, 8 were requested");
}

TEST(PlanPf, AVfThatIsAttachedToAStoppedVmIsInUse) {
    auto attached = with_attachment(desired(), host(), "aaaa0001", ask());
    attached.attachments.at("aaaa0001").live = false;
    auto const error = plan_pf(host(7), attached, pf_address, want_vfs(4)).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("attached to vm1 (attachment aaaa0001)"));
}

TEST(PlanPf, RefusesAnUnknownPfAndNamesTheKnown) {
    auto const error = plan_pf(host(0), desired(), PciAddress{0, 9, 0, 0}, want_vfs(1)).error();
    EXPECT_EQ(error.problem, Problem::not_found);
    EXPECT_THAT(error.remedy, HasSubstr("0000:01:00.0 (enp1s0)"));
}

TEST(PlanPf, RefusesAPfThatCannotBeRead) {
    auto view = host(0);
    view.kernel.pfs[pf_address].stale = true;
    view.kernel.pfs[pf_address].stale_reason = "no answer for 60 s";
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(1)).error();
    EXPECT_EQ(error.problem, Problem::unavailable);
    EXPECT_THAT(error.detail, HasSubstr("no answer for 60 s"));
}

TEST(PlanPf, BeginsNothingOnAPfThatIsStuck) {
    auto view = host(0);
    view.kernel.pfs[pf_address].stuck = "bash (pid 812) hangs";
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(1)).error();
    EXPECT_EQ(error.problem, Problem::pf_stuck);
    EXPECT_EQ(error.detail, "0000:01:00.0 is stuck: bash (pid 812) hangs");
}

TEST(PlanPf, MakesNoVfsWhileAnotherPfKeepsTheKernelBusy) {
    auto view = host(0);
    auto& other = view.kernel.pfs[PciAddress{0, 9, 0, 0}];
    other.stuck = "bash (pid 812) hangs";
    EXPECT_TRUE(plan_pf(view, desired(), pf_address, want_vfs(1))) << "an unbind that hangs";
    other.pci_busy = true;
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(1)).error();
    EXPECT_EQ(error.problem, Problem::pci_busy);
    EXPECT_THAT(error.detail, HasSubstr("0000:09:00.0 is stuck: bash (pid 812) hangs"));
    EXPECT_TRUE(plan_pf(view, desired(), pf_address, want_vfs(0))) << "nothing is made or removed";
}

TEST(PlanPf, RefusesToShrinkWhileAVmRunsWithAVf) {
    auto view = host(7);
    view.hypervisor.vms[vm1_uuid].live.push_back({view.kernel.pfs[pf_address].vfs[2].pci, {}});
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(4)).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("VF 2 is in the running VM vm1"));
}

TEST(PlanPf, RefusesToRemoveWhatAStoppedVmIsConfiguredWith) {
    auto view = host(7);
    view.hypervisor.vms[vm2_uuid].config.push_back({view.kernel.pfs[pf_address].vfs[0].pci, {}});
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(0)).error();
    EXPECT_THAT(error.detail, HasSubstr("persistent configuration of VM vm2"));
}

TEST(PlanPf, RefusesWhileAProcessHoldsAVf) {
    auto view = host(7);
    view.kernel.pfs[pf_address].vfs[6].holders.push_back({812, "qemu-system-x86"});
    auto const error = plan_pf(view, desired(), pf_address, want_vfs(0)).error();
    EXPECT_THAT(error.detail, HasSubstr("VF 6 is held open by qemu-system-x86 (pid 812)"));
}

TEST(PlanPf, RefusesWhileAVfIsInQuarantine) {
    auto goal = desired();
    goal.quarantine[{pf_address, 3}].reason = "FLR failed";
    auto const error = plan_pf(host(7), goal, pf_address, want_vfs(0)).error();
    EXPECT_THAT(error.detail, HasSubstr("VF 3 is in quarantine: FLR failed"));
}

// A source that can't be read counts as in use.
TEST(PlanPf, RefusesToRemoveVfsWhileLibvirtCannotBeAsked) {
    auto view = host(7);
    view.hypervisor.stale = true;
    view.hypervisor.stale_reason = "connection refused";
    auto const refused = plan_pf(view, desired(), pf_address, want_vfs(0)).error();
    EXPECT_EQ(refused.problem, Problem::unavailable);
    EXPECT_THAT(refused.detail, HasSubstr("in use: connection refused"));
    EXPECT_THAT(refused.remedy, HasSubstr("systemctl status libvirtd virtqemud"));
    auto none = host(0);
    none.hypervisor.stale = true;
    EXPECT_TRUE(plan_pf(none, desired(), pf_address, want_vfs(7)))
        << "creation from nothing takes nothing from anybody";
}

TEST(PlanPf, ObserveTouchesNothing) {
    auto spec = want_vfs(7);
    spec.mode = PfMode::observe;
    EXPECT_THAT(plan_pf(host(0), desired(), pf_address, spec).value().steps, IsEmpty());
}

TEST(PlanPf, RefusesToObserveWhatIsAttached) {
    auto spec = want_vfs(7);
    spec.mode = PfMode::observe;
    auto const attached = with_attachment(desired(), host(), "aaaa0001", ask());
    EXPECT_EQ(plan_pf(host(), attached, pf_address, spec).error().problem, Problem::conflict);
}

}  // namespace
}  // namespace vfmgr
