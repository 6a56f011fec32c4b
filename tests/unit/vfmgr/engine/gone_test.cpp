// SPDX-License-Identifier: Apache-2.0
// A PF that is gone, and one that moved, by an admin's command; and recovery, which checks a PF's
// identity before it undoes anything on it.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PciAddress const pf1{0, 2, 0, 0};
MacAddress const stranger{{0x52, 0x54, 0, 0xbb, 0, 9}};

KernelView two_pfs() {
    auto view = igb_host();
    view.pfs[pf1] = make_igb_pf("0000:02:00.0", "enp2s0");
    return view;
}

AttachmentSpec of(AttachmentSpec spec, PciAddress const& pf) {
    spec.pf = pf;
    return spec;
}

struct GoneTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{two_pfs()};
    FakeHypervisor hypervisor{kernel};

    GoneTest() {
        hypervisor.add(make_vm("vm1", vm1));
        hypervisor.add(make_vm("vm2", vm2));
        for (auto const* uuid : {vm1, vm2}) EXPECT_TRUE(hypervisor.start(uuid));
    }
    static void attach(Bench& bench) {
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
        EXPECT_EQ(bench.run(Attach{ask("vm2")}).state, OperationState::succeeded);
        bench.engine.start_observing();
    }
    void take_card_out() {
        kernel.change([](KernelView& host) { host.pfs.erase(pf0); });
    }
    [[nodiscard]] std::size_t kernel_steps() const { return kernel.steps().size(); }
};

TEST_F(GoneTest, WhatIsAttachedOfItEndsByACommandAlone) {
    Bench bench(kernel, hypervisor, folder.path());
    attach(bench);
    auto const attached = bench.desired().attachments;
    EXPECT_EQ(bench.run(EndGonePf{pf0}).problem->problem, Problem::conflict) << "it is there";
    take_card_out();
    auto const steps = kernel_steps();
    have_looked(bench.engine, kernel);
    EXPECT_EQ(bench.desired().attachments, attached) << "a look ends nothing";
    auto const ended = bench.run(EndGonePf{pf0});
    EXPECT_EQ(ended.state, OperationState::succeeded) << ended.problem->detail;
    EXPECT_EQ(ended.kind, OperationKind::end_gone_pf);
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_THAT(bench.desired().quarantine, SizeIs(2));
    for (auto const& [uuid, vm] : hypervisor.view().vms) {
        EXPECT_THAT(vm.live, IsEmpty());
        EXPECT_THAT(vm.config, IsEmpty());
    }
    EXPECT_EQ(kernel_steps(), steps) << "nothing of a device that is not there";
}

TEST_F(GoneTest, AddressesStayReservedUntilItIsConfirmed) {
    Bench bench(kernel, hypervisor, folder.path());
    attach(bench);
    auto const mac = bench.desired().attachments.begin()->second.settings.mac;
    take_card_out();
    EXPECT_EQ(bench.run(ConfirmGonePf{pf0}).problem->problem, Problem::conflict) << "attached";
    bench.run(EndGonePf{pf0});
    bench.run(ReplacePfSpec{pf1, spec_with_vfs(7)});
    auto asked = of(ask(), pf1);
    asked.settings.mac = mac;
    EXPECT_EQ(bench.run(Attach{asked}).problem->problem, Problem::conflict);
    EXPECT_EQ(bench.run(ConfirmGonePf{pf0}).state, OperationState::succeeded);
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
    EXPECT_FALSE(bench.desired().pfs.contains(pf0));
    EXPECT_FALSE(bench.desired().identities.contains(pf0));
    EXPECT_EQ(bench.run(Attach{asked}).state, OperationState::succeeded);
}

TEST_F(GoneTest, WhatCouldNotBeDoneIsNamedAndTheRestIsDone) {
    Bench bench(kernel, hypervisor, folder.path());
    attach(bench);
    take_card_out();
    hypervisor.detach = DetachBehaviour::times_out;
    hypervisor.stop(vm2);
    auto const failed = bench.run(EndGonePf{pf0});
    EXPECT_EQ(failed.state, OperationState::failed);
    ASSERT_TRUE(failed.problem);
    EXPECT_THAT(failed.problem->detail, HasSubstr("VM vm1 did not let go"));
    EXPECT_THAT(failed.problem->remedy, HasSubstr("vfctl pf gone 0000:01:00.0"));
    EXPECT_THAT(hypervisor.view().vms.at(vm2).config, IsEmpty()) << "the next VM's all the same";
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    std::vector<std::string> residue;
    for (auto const& [vf, quarantine] : bench.desired().quarantine)
        std::ranges::copy(quarantine.residue, std::back_inserter(residue));
    EXPECT_THAT(residue, testing::ElementsAre(HasSubstr("still to do: ")));
    EXPECT_EQ(bench.run(ConfirmGonePf{pf0}).problem->problem, Problem::vf_in_use);
    hypervisor.detach = DetachBehaviour::works;
    EXPECT_EQ(bench.run(EndGonePf{pf0}).state, OperationState::succeeded) << "once more";
    for (auto const& [vf, quarantine] : bench.desired().quarantine)
        EXPECT_THAT(quarantine.residue, IsEmpty());
}

TEST_F(GoneTest, APfWithQuarantinesIsNotForgotten) {
    Bench bench(kernel, hypervisor, folder.path());
    attach(bench);
    take_card_out();
    bench.run(EndGonePf{pf0});
    auto const refused = bench.submit(ForgetPf{pf0});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_THAT(refused.error().remedy, HasSubstr("vfctl vf lift-quarantine 0000:01:00.0"));
}

TEST_F(GoneTest, ItsVfsAreCleanedWhenItComesBack) {
    Bench bench(kernel, hypervisor, folder.path());
    attach(bench);
    take_card_out();
    bench.run(EndGonePf{pf0});
    kernel.change([&](KernelView& host) { host.pfs[pf0] = make_igb_pf("0000:01:00.0", "enp1s0"); });
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const quarantined = bench.desired().quarantine;
    for (auto const& [vf, quarantine] : quarantined)
        EXPECT_EQ(bench.run(LiftQuarantine{vf}).state, OperationState::succeeded);
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
    EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
}

// The VM is off: libvirt accepts a device that is gone in the XML of such a VM.
TEST_F(GoneTest, ADaemonThatDiesMeanwhileGivesNothingBackToTheVms) {
    {
        Bench bench(kernel, hypervisor, folder.path());
        attach(bench);
        hypervisor.stop(vm1);
        take_card_out();
        // As after kill -9 with only the last step done.
        Operation operation;
        operation.id = "dead";
        operation.kind = OperationKind::end_gone_pf;
        operation.state = OperationState::running;
        operation.subject = "/v1/pfs/0000:01:00.0";
        Attachment attached;
        for (auto const& [id, each] : bench.desired().attachments)
            if (each.vm_uuid == vm1) attached = each;
        DetachHostdev const step{vm1,   attached.id, attached.vf, attached.vf_pci,
                                 false, true,        "vm1"};
        AttachHostdev const undo{vm1, attached.id, attached.vf, attached.vf_pci,
                                 {},  false,       true,        "vm1"};
        ASSERT_TRUE(hypervisor.perform(step, Deadline::max()));
        Batch batch;
        batch.save_operations.push_back(operation);
        batch.save_records.push_back({"dead", {0, step, {undo}, StepState::done}});
        ASSERT_TRUE(bench.engine.control().wait(
            [&](Control::State& state) { return state.commit(batch); }));
    }
    Bench bench(kernel, hypervisor, folder.path());
    EXPECT_EQ(bench.ended("dead").state, OperationState::failed);
    EXPECT_THAT(hypervisor.view().vms.at(vm1).config, IsEmpty());
    EXPECT_EQ(bench.run(EndGonePf{pf0}).state, OperationState::succeeded);
}

// The card is in another slot after the host was off: an undo is for the device that was changed.
TEST_F(GoneTest, RecoveryUndoesNothingOnAnotherDevice) {
    {
        Bench bench(kernel, hypervisor, folder.path());
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        Operation operation;
        operation.id = "dead";
        operation.kind = OperationKind::configure_pf;
        operation.state = OperationState::running;
        operation.subject = "/v1/pfs/0000:01:00.0";
        Batch batch;
        batch.save_operations.push_back(operation);
        batch.save_records.push_back({"dead",
                                      {0,
                                       SetNumVfs{pf0, 7},
                                       {SetPciValues{pf0, true}, SetNumVfs{pf0, 0}},
                                       StepState::intended}});
        ASSERT_TRUE(bench.engine.control().wait(
            [&](Control::State& state) { return state.commit(batch); }));
    }
    kernel.change([](KernelView& host) { host.pfs.at(pf0).info.identity.mac = stranger; });
    auto const steps = kernel_steps();
    Bench bench(kernel, hypervisor, folder.path());
    auto const dead = bench.ended("dead");
    EXPECT_EQ(kernel_steps(), steps);
    EXPECT_EQ(kernel.view().pfs.at(pf0).info.num_vfs, 7);
    EXPECT_THAT(dead.problem->detail, HasSubstr("did not undo \"create 7 VFs on 0000:01:00.0\""));
    EXPECT_THAT(dead.problem->detail, HasSubstr("another device"));
}

struct RekeyTest : GoneTest {
    // As after a boot: no VFs yet, the VMs off.
    void swap_slots() {
        for (auto const* uuid : {vm1, vm2}) hypervisor.stop(uuid);
        kernel.change([](KernelView& host) {
            auto const identity = [&](PciAddress const& pf) {
                return host.pfs.at(pf).info.identity;
            };
            auto const first = identity(pf0);
            auto const second = identity(pf1);
            host.pfs[pf0] = make_igb_pf("0000:01:00.0", "enp1s0");
            host.pfs[pf1] = make_igb_pf("0000:02:00.0", "enp2s0");
            host.pfs.at(pf0).info.identity = second;
            host.pfs.at(pf1).info.identity = first;
        });
    }
    [[nodiscard]] PciAddress vf_pci(PciAddress const& pf, std::uint16_t index) const {
        return kernel.view().pfs.at(pf).vfs.at(index).pci;
    }
};

TEST_F(RekeyTest, TwoNicsThatSwappedSlotsKeepWhatIsTheirs) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(ReplacePfSpec{pf1, spec_with_vfs(7)});
    EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
    EXPECT_EQ(bench.run(Attach{of(ask("vm2"), pf1)}).state, OperationState::succeeded);
    auto const before = bench.desired();
    bench.engine.start_observing();
    swap_slots();
    EXPECT_FALSE(hypervisor.start(vm1)) << "rather than with the other one's VF";
    auto const done = bench.run(RekeyPf{pf0, pf1});
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    auto const after = bench.desired();
    EXPECT_EQ(after.pfs.at(pf1).spec, before.pfs.at(pf0).spec);
    EXPECT_EQ(after.pfs.at(pf0).spec, before.pfs.at(pf1).spec);
    for (auto const& [pf, kept] : after.pfs)
        for (auto const& [other, was] : before.pfs) EXPECT_GT(kept.revision, was.revision);
    for (auto const& [id, attachment] : after.attachments) {
        auto const& was = before.attachments.at(id);
        EXPECT_NE(attachment.vf.pf, was.vf.pf);
        EXPECT_EQ(attachment.vf.index, was.vf.index);
        EXPECT_EQ(attachment.vf_pci, vf_pci(attachment.vf.pf, attachment.vf.index));
        auto const vm = hypervisor.view().vms.at(attachment.vm_uuid);
        ASSERT_THAT(vm.config, SizeIs(1));
        EXPECT_EQ(vm.config[0].pci, attachment.vf_pci);
        auto const vf = kernel.view().pfs.at(attachment.vf.pf).vfs.at(attachment.vf.index);
        EXPECT_EQ(vf.settings.mac, was.settings.mac) << "its own MAC, on the new VF";
        EXPECT_EQ(vf.driver, was.driver);
        EXPECT_TRUE(hypervisor.start(attachment.vm_uuid));
    }
    EXPECT_EQ(bench.run(RekeyPf{pf0, pf1}).problem->problem, Problem::conflict);
}

TEST_F(RekeyTest, XmlThatCanNotBeChangedAsAWholeIsAsItWas) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
    auto const before = bench.desired();
    bench.engine.start_observing();
    swap_slots();
    auto const xml = hypervisor.view().vms.at(vm1).config;
    hypervisor.fail_at = Fault{hypervisor.performed() + 1, FaultPoint::before};
    auto const failed = bench.run(RekeyPf{pf0, pf1});
    EXPECT_EQ(failed.state, OperationState::failed);
    EXPECT_EQ(hypervisor.view().vms.at(vm1).config, xml);
    EXPECT_EQ(bench.desired().attachments, before.attachments);
    EXPECT_EQ(bench.desired().pfs, before.pfs);
    hypervisor.fail_at.reset();
    EXPECT_EQ(bench.run(RekeyPf{pf0, pf1}).state, OperationState::succeeded);
}

}  // namespace
}  // namespace vfmgr
