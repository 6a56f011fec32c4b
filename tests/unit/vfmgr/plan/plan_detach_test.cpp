// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

// vm1 has VF 0, live and in its configuration; the interface is missing (after a crash, or an admin
// removed it).
struct Attached {
    HostView view = host();
    DesiredState goal = with_attachment(desired(), host(), "aaaa0001", ask());
    Attachment attachment = goal.attachments.at("aaaa0001");

    Attached() {
        auto& vf0 = view.kernel.pfs[pf_address].vfs[0];
        vf0.driver = "vfio-pci";
        vf0.settings.mac = attachment.settings.mac;
        vf0.settings.vlan = attachment.settings.vlan;
        VmHostdev const hostdev{vf0.pci, hostdev_alias("aaaa0001")};
        view.hypervisor.vms[vm1_uuid].live = {hostdev};
        view.hypervisor.vms[vm1_uuid].config = {hostdev};
    }
};

TEST(PlanDetach, DetachesResetsUnbindsAndPutsTheBaselineBack) {
    Attached const attached;
    auto const plan = plan_detach(attached.view, attached.goal, attached.attachment).value();
    VfSpec baseline;
    baseline.mac = MacAddress{};
    baseline.vlan = Vlan{};
    VfId const vf0{pf_address, 0};
    EXPECT_EQ(
        plan.steps,
        (std::vector<Step>{DetachHostdev{vm1_uuid, "aaaa0001", vf0, vf(0).pci, true, true, "vm1"},
                           ResetVf{vf0}, BindVfs{pf_address, {0}, {}},
                           ConfigureVfs{pf_address, {{0, baseline}}, {}}}));
    ASSERT_EQ(plan.blast_radius.size(), 1U);
    EXPECT_THAT(plan.blast_radius[0], HasSubstr("running VM vm1"));
}

TEST(PlanDetach, GivesTheVfTheDriverThatUnusedOnesHave) {
    Attached attached;
    auto& driver = attached.goal.pfs.at(pf_address).spec.vf_driver;
    driver = "igbvf";
    auto const binds = [&] {
        return steps_of<BindVfs>(
            plan_detach(attached.view, attached.goal, attached.attachment).value());
    };
    EXPECT_EQ(binds(), (std::vector<BindVfs>{{pf_address, {0}, {}}, {pf_address, {0}, "igbvf"}}));
    driver = "vfio-pci";
    EXPECT_EQ(binds(), (std::vector<BindVfs>{{pf_address, {0}, {}}, {pf_address, {0}, "vfio-pci"}}))
        << "settings reach a VF for certain only without a driver";
    attached.view.kernel.pfs[pf_address].vfs[0].settings = attached.attachment.baseline;
    EXPECT_THAT(binds(), IsEmpty()) << "there is nothing to set, and it has the driver";
}

TEST(PlanDetach, DetachesOnlyWhereTheVfStillIs) {
    Attached attached;
    attached.view.hypervisor.vms[vm1_uuid].live.clear();
    auto const detach = steps_of<DetachHostdev>(
        plan_detach(attached.view, attached.goal, attached.attachment).value());
    ASSERT_EQ(detach.size(), 1U);
    EXPECT_FALSE(detach[0].live);
    EXPECT_TRUE(detach[0].config);
}

TEST(PlanDetach, AVmThatIsGoneNeedsNoDetach) {
    Attached attached;
    attached.view.hypervisor.vms.erase(vm1_uuid);
    auto const plan = plan_detach(attached.view, attached.goal, attached.attachment).value();
    EXPECT_THAT(steps_of<DetachHostdev>(plan), IsEmpty());
    EXPECT_EQ(steps_of<ResetVf>(plan).size(), 1U);
}

TEST(PlanDetach, RefusesWhileLibvirtCannotBeAsked) {
    Attached attached;
    attached.view.hypervisor.stale = true;
    EXPECT_EQ(plan_detach(attached.view, attached.goal, attached.attachment).error().problem,
              Problem::unavailable);
}

TEST(PlanDetach, RefusesToTakeTheVfFromSomebodyElse) {
    Attached attached;
    attached.view.hypervisor.vms[vm2_uuid].config.push_back({vf(0).pci, {}});
    auto const error = plan_detach(attached.view, attached.goal, attached.attachment).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("also a device of VM vm2"));
}

TEST(PlanDetach, AHolderIsTheVmWhileItRunsWithTheVf) {
    Attached attached;
    attached.view.kernel.pfs[pf_address].vfs[0].holders.push_back({812, "qemu-system-x86"});
    EXPECT_TRUE(plan_detach(attached.view, attached.goal, attached.attachment));
    attached.view.hypervisor.vms[vm1_uuid].live.clear();
    auto const error = plan_detach(attached.view, attached.goal, attached.attachment).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("held open by qemu-system-x86 (pid 812)"));
}

TEST(PlanDetach, SettingsThatWereNotTouchedStay) {
    Attached attached;
    attached.view.kernel.pfs[pf_address].vfs[0].settings.trust = true;
    auto const configure = steps_of<ConfigureVfs>(
        plan_detach(attached.view, attached.goal, attached.attachment).value());
    ASSERT_EQ(configure.size(), 1U);
    EXPECT_FALSE(configure[0].changes[0].settings.trust);
}

// Two networks share VLAN 100; the one with the larger MTU is detached.
TEST(PlanDetach, LowersTheInterfacesMtuToWhatTheOtherAttachmentNeeds) {
    Attached attached;
    auto small = train();
    small.name = "small";
    small.prefix = prefix("192.168.60.0/24");
    small.pfs = {{pf_address, ip("192.168.60.1")}};
    small.mtu = 1500;
    attached.goal.networks["small"] = {small};
    attached.goal.pfs.at(pf_address).base = PfBase{true, 9000, false, {}};
    auto spec = ask("vm2");
    spec.network = "small";
    attached.goal = with_attachment(attached.goal, host(), "bbbb0001", spec);
    InterfaceId const tagged{pf_address, 100};
    auto& state = attached.view.kernel.pfs[pf_address];
    state.info.up = true;
    state.info.mtu = 9000;
    state.interfaces.push_back({tagged, "enp1s0.100", true, 9000, true, {}, {}, {}});
    EXPECT_EQ(
        steps_of<SetLink>(plan_detach(attached.view, attached.goal, attached.attachment).value()),
        (std::vector<SetLink>{{tagged, true, 1500}}));
}

TEST(PlanRestore, CreatesVfsThenRestoresWhatIsAttached) {
    Attached const attached;
    auto first = plan_restore(host(0), attached.goal, pf_address).value();
    EXPECT_EQ(first.steps,
              (std::vector<Step>{SetLink{{pf_address, {}}, true, 1500}, SetNumVfs{pf_address, 7}}))
        << "bnxt makes no VFs while it is down";
    auto const second = plan_restore(host(7), attached.goal, pf_address).value();
    EXPECT_EQ(steps_of<BindVfs>(second), (std::vector<BindVfs>{{pf_address, {0}, "vfio-pci"}}));
    EXPECT_EQ(steps_of<ConfigureVfs>(second)[0].changes[0].settings.mac,
              attached.attachment.settings.mac);
    EXPECT_EQ(steps_of<AddVlanInterface>(second).size(), 1U);
}

TEST(PlanRestore, GivesTheVfTheDriverThatTheAttachmentHad) {
    Attached attached;
    attached.goal.attachments.at("aaaa0001").driver = "mlx5_vfio_pci";
    auto const plan = plan_restore(host(7), attached.goal, pf_address).value();
    EXPECT_EQ(steps_of<BindVfs>(plan), (std::vector<BindVfs>{{pf_address, {0}, "mlx5_vfio_pci"}}));
}

TEST(PlanRestore, BindsWhatHasNoDriverAndIsNotAttachedLast) {
    Attached attached;
    attached.goal.pfs.at(pf_address).spec.vf_driver = "vfio-pci";
    auto view = host(4);
    view.kernel.pfs[pf_address].vfs[1].driver = "igbvf";  // a VM may be about to start with it
    auto const steps = plan_restore(view, attached.goal, pf_address).value().steps;
    EXPECT_EQ(steps.back(), Step(BindVfs{pf_address, {2, 3}, "vfio-pci"}));
    attached.goal.attachments.clear();
    EXPECT_EQ(plan_restore(view, attached.goal, pf_address).value().steps,
              (std::vector<Step>{BindVfs{pf_address, {0, 2, 3}, "vfio-pci"}}));
}

TEST(PlanRestore, DoesNotBindAVfThatTheVmsXmlDoesNotName) {
    Attached const attached;
    auto view = host(7);
    view.kernel.pfs[pf_address].vfs[0].pci.function = 7;
    auto const plan = plan_restore(view, attached.goal, pf_address).value();
    EXPECT_THAT(steps_of<BindVfs>(plan), IsEmpty());
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_THAT(plan.notes[0], HasSubstr("the XML of VM vm1 names"));
}

TEST(PlanRestore, NamesAnAttachmentWhoseVfDoesNotExist) {
    Attached attached;
    attached.goal.pfs.at(pf_address).spec.num_vfs.reset();
    auto const plan = plan_restore(host(0), attached.goal, pf_address).value();
    EXPECT_THAT(steps_of<BindVfs>(plan), IsEmpty());
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_EQ(plan.notes[0], "VF 0000:01:00.0/0 does not exist, so VM vm1 can't start with it");
}

TEST(PlanRestore, LeavesAVfThatIsHeldOpen) {
    Attached const attached;
    auto view = host(7);
    view.kernel.pfs[pf_address].vfs[0].driver = "mlx5_vfio_pci";
    view.kernel.pfs[pf_address].vfs[0].holders.push_back({812, "qemu-system-x86"});
    auto const plan = plan_restore(view, attached.goal, pf_address).value();
    EXPECT_THAT(steps_of<BindVfs>(plan), IsEmpty());
    ASSERT_EQ(plan.notes.size(), 1U);
    EXPECT_THAT(plan.notes[0], HasSubstr("held open by qemu-system-x86 (pid 812)"));
}

TEST(PlanRestore, NeverResizesVfsThatExist) {
    auto goal = desired();
    EXPECT_THAT(plan_restore(host(3), goal, pf_address).value().steps, IsEmpty());
}

TEST(PlanRestore, LeavesAHalfMadeAttachmentToRecovery) {
    Attached attached;
    attached.goal.attachments.at("aaaa0001").state = AttachmentState::attaching;
    EXPECT_THAT(plan_restore(host(7), attached.goal, pf_address).value().steps, IsEmpty());
}

TEST(Inverse, IsMadeOfWhatWasSeenBefore) {
    auto const before = host(3);
    EXPECT_EQ(inverse(SetNumVfs{pf_address, 7}, before),
              (std::vector<Step>{SetNumVfs{pf_address, 3}, SetPciValues{pf_address, true}}));
    VfSpec change;
    change.mac = mac(9);
    change.link_state = LinkState::enable;  // not reported before: can't be restored
    VfSpec back;
    back.mac = MacAddress{};
    EXPECT_EQ(inverse(ConfigureVfs{pf_address, {{1, change}}, {}}, before),
              (std::vector<Step>{ConfigureVfs{pf_address, {{1, back}}, {}}}));
    VfId const vf1{pf_address, 1};
    EXPECT_EQ(inverse(BindVfs{pf_address, {1}, "vfio-pci"}, before),
              (std::vector<Step>{BindVfs{pf_address, {1}, {}}, SetPciValues{pf_address, {}, {1}}}));
    auto mixed = before;
    mixed.kernel.pfs[pf_address].vfs[2].driver = "igbvf";
    EXPECT_EQ(inverse(BindVfs{pf_address, {0, 1, 2, 9}, "vfio-pci"}, mixed),
              (std::vector<Step>{BindVfs{pf_address, {0, 1}, {}}, BindVfs{pf_address, {2}, "igbvf"},
                                 SetPciValues{pf_address, {}, {0, 1, 2}}}));
    EXPECT_EQ(inverse(BindVfs{pf_address, {1, 2}, {}}, mixed),
              (std::vector<Step>{BindVfs{pf_address, {2}, "igbvf"}}))
        << "an unbind names no driver";
    EXPECT_EQ(inverse(ResetVf{vf1}, before),
              (std::vector<Step>{SetPciValues{pf_address, {}, {}, {{1, "flr bus"}}}}));
    InterfaceId const untagged{pf_address, {}};
    EXPECT_EQ(inverse(SetLink{untagged, true, 9000}, before),
              (std::vector<Step>{SetLink{untagged, false, 1500}}));
    InterfaceId const tagged{pf_address, 100};
    EXPECT_EQ(inverse(AddVlanInterface{tagged}, before),
              (std::vector<Step>{RemoveVlanInterface{tagged}}));
    EXPECT_EQ(inverse(AddRdmaLink{pf_address}, before),
              (std::vector<Step>{RemoveRdmaLink{pf_address}}));
    auto const pci = vf(1).pci;
    EXPECT_EQ(inverse(AttachHostdev{vm1_uuid, "x", vf1, pci, {}, true, true}, before),
              (std::vector<Step>{DetachHostdev{vm1_uuid, "x", vf1, pci, true, true}, ResetVf{vf1},
                                 SetPciValues{pf_address, {}, {}, {{1, "flr bus"}}}}))
        << "the VM may have used it";
}

TEST(Inverse, WhatAlreadyHeldIsNotUndone) {
    auto before = host(7);
    before.kernel.pfs[pf_address].vfs[1].driver = "vfio-pci";
    before.kernel.pfs[pf_address].info.rdma_device = "mlx5_0";
    before.kernel.pfs[pf_address].interfaces[0].addresses = {ip("10.0.0.1")};
    auto const pci = vf(1).pci;
    VfId const vf1{pf_address, 1};
    before.hypervisor.vms[vm1_uuid].config = {{pci, {}}};
    EXPECT_THAT(inverse(SetNumVfs{pf_address, 7}, before), IsEmpty());
    EXPECT_THAT(inverse(BindVfs{pf_address, {1}, "vfio-pci"}, before), IsEmpty());
    EXPECT_THAT(inverse(AddRdmaLink{pf_address}, before), IsEmpty());
    EXPECT_THAT(inverse(AddAddress{{pf_address, {}}, ip("10.0.0.1")}, before), IsEmpty());
    EXPECT_THAT(inverse(ResetVf{{pf_address, 9}}, before), IsEmpty()) << "there is no such VF";
    EXPECT_EQ(inverse(AttachHostdev{vm1_uuid, "x", vf1, pci, {}, true, true}, before),
              (std::vector<Step>{DetachHostdev{vm1_uuid, "x", vf1, pci, true, false}, ResetVf{vf1},
                                 SetPciValues{pf_address, {}, {}, {{1, "flr bus"}}}}));
}

}  // namespace
}  // namespace vfmgr
