// SPDX-License-Identifier: Apache-2.0
// A VF that somebody plugged into a VM becomes an attachment, and is one from then on: through the
// VM's stop and start, to a detach that leaves it clean.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

struct AdoptionTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::optional<Bench> bench;
    VfState before;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        Bench(kernel, hypervisor, folder.path()).run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        plug_in_by_hand();
        bench.emplace(kernel, hypervisor, folder.path());  // which observes the host
    }
    // ip link set PF vf 0 mac … vlan 100; virsh attach-device vm1 hostdev.xml --persistent
    void plug_in_by_hand() {
        kernel.change([&](KernelView& host) {
            auto& vf = host.pfs.at(pf0).vfs.front();
            vf.settings.mac = MacAddress{{0x02, 0, 0, 0, 0, 0x33}};
            vf.settings.vlan = Vlan{100};
            vf.driver = "vfio-pci";
            before = vf;
        });
        hypervisor.change([&](HypervisorView& view) {
            auto& vm = view.vms.at(vm1);
            vm.live = {{before.pci, "hostdev0", {}, true}};
            vm.config = {{before.pci, {}, {}, true}};
        });
        kernel.hold(before.pci, {4001, "qemu-system-x86"});
    }
    [[nodiscard]] AttachmentSpec adopting(std::optional<VerifyMode> verify = {}) const {
        AttachmentSpec spec;
        spec.vm = "vm1";
        spec.adopt = before.pci;
        spec.network = "train";
        spec.verify = verify;
        return spec;
    }
    Attachment adopt() {
        auto const operation = bench->run(Attach{adopting()});
        EXPECT_EQ(operation.state, OperationState::succeeded)
            << (operation.problem ? operation.problem->detail : "");
        auto const attachments = bench->desired().attachments;
        return attachments.empty() ? Attachment{} : attachments.begin()->second;
    }
    [[nodiscard]] VfState vf() const { return kernel.view().pfs.at(pf0).vfs.front(); }
    [[nodiscard]] VmInfo vm() const { return hypervisor.view().vms.at(vm1); }
    void expect_as_plugged() const {
        EXPECT_EQ(vm().live, (std::vector<VmHostdev>{{before.pci, "hostdev0", {}, true}}));
        EXPECT_EQ(vf().driver, "vfio-pci");
        EXPECT_EQ(vf().settings, before.settings);
        EXPECT_EQ(kernel.resets({pf0, 0}), 0U);
    }
};

TEST_F(AdoptionTest, TheVmKeepsItAndThePersistentXmlIsOurs) {
    auto const attachment = adopt();
    EXPECT_EQ(attachment.state, AttachmentState::attached);
    expect_as_plugged();
    EXPECT_EQ(vm().config,
              (std::vector<VmHostdev>{{before.pci, hostdev_alias(attachment.id), {}, false}}));
    EXPECT_THAT(bench->run(Attach{adopting()}).problem->detail, HasSubstr("vfmgr's already"));
}

TEST_F(AdoptionTest, ADryRunShowsThePlanAndDoesNothing) {
    Intent intent;
    intent.dry_run = true;
    auto const answer = bench->submit(Attach{adopting()}, intent).value();
    EXPECT_EQ(answer.attachment->settings.mac, before.settings.mac);
    EXPECT_TRUE(bench->desired().attachments.empty());
    EXPECT_TRUE(vm().config.front().managed);
}

TEST_F(AdoptionTest, TheDetachFromTheRunningVmLeavesItClean) {
    auto spec = spec_with_vfs(2);
    spec.vf_driver = "vfio-pci";
    bench->run(ReplacePfSpec{pf0, spec});
    auto const attachment = adopt();
    auto const ended = bench->run(Detach{attachment.id});
    ASSERT_EQ(ended.state, OperationState::succeeded) << ended.problem->detail;
    EXPECT_THAT(vm().live, IsEmpty());
    EXPECT_THAT(vm().config, IsEmpty());
    EXPECT_EQ(vf().driver, "vfio-pci") << "of unused VFs, after libvirt's igbvf";
    EXPECT_THAT(vf().holders, IsEmpty());
    EXPECT_EQ(vf().settings.mac, MacAddress{});
    EXPECT_EQ(vf().settings.vlan, Vlan{});
    EXPECT_EQ(kernel.resets({pf0, 0}), 1U);
    EXPECT_TRUE(ended.certificate);
}

TEST_F(AdoptionTest, IsBoundAgainAfterTheStopInModeManage) {
    bench->engine.start_observing();
    auto const attachment = adopt();
    hypervisor.stop(vm1);
    observe_until(*bench, [&] { return vf().driver == "vfio-pci"; });
    EXPECT_EQ(vf().settings.mac, before.settings.mac);
    ASSERT_TRUE(hypervisor.start(vm1));
    EXPECT_EQ(vm().live.front().alias, hostdev_alias(attachment.id));
    EXPECT_FALSE(vm().live.front().managed);
    hypervisor.stop(vm1);
    EXPECT_EQ(vf().driver, "vfio-pci") << "it is not libvirt's to bind any more";
    EXPECT_EQ(bench->run(Detach{attachment.id}).state, OperationState::succeeded);
}

TEST_F(AdoptionTest, AFailedProofTakesNothingFromTheVm) {
    bench->guest_reports(Verdict::fail);
    auto const operation = bench->run(Attach{adopting(VerifyMode::required)});
    EXPECT_EQ(operation.state, OperationState::failed);
    EXPECT_THAT(operation.problem->detail, HasSubstr("the attachment stands"));
    EXPECT_EQ(bench->desired().attachments.size(), 1U);
    expect_as_plugged();
}

TEST_F(AdoptionTest, WhatFailsIsUndone) {
    hypervisor.fail_at = Fault{hypervisor.performed(), FaultPoint::after};
    EXPECT_EQ(bench->run(Attach{adopting()}).state, OperationState::failed);
    EXPECT_TRUE(bench->desired().attachments.empty());
    EXPECT_TRUE(bench->desired().quarantine.empty());
    expect_as_plugged();
    EXPECT_EQ(vm().config, (std::vector<VmHostdev>{{before.pci, {}, {}, true}}));
}

TEST_F(AdoptionTest, EveryFailingStepIsUndone) {
    auto const plugged = text(kernel.view());
    std::size_t failures = 0;
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after})
        for (std::size_t n = 0; n < 6; ++n) {
            kernel.fail_at = Fault{kernel.performed() + n, point};
            auto const operation = bench->run(Attach{adopting()});
            kernel.fail_at.reset();
            ASSERT_EQ(operation.state, OperationState::failed) << n;
            ++failures;
            EXPECT_EQ(text(kernel.view()), plugged) << n;
            EXPECT_TRUE(bench->desired().attachments.empty());
            EXPECT_TRUE(vm().config.front().managed);
            expect_as_plugged();
        }
    EXPECT_EQ(failures, 18U);
}

TEST_F(AdoptionTest, AStoreThatIsOlderThanTheVmTakesTheAttachmentUpAgain) {
    bench.reset();
    hypervisor.change([&](HypervisorView& view) {
        auto& there = view.vms.at(vm1);
        there.live = there.config = {{before.pci, "ua-vfmgr-3f9c2b1d"}};
    });
    bench.emplace(kernel, hypervisor, folder.path());
    EXPECT_EQ(adopt().id, "3f9c2b1d");
    EXPECT_EQ(bench->run(Detach{"3f9c2b1d"}).state, OperationState::succeeded);
    EXPECT_THAT(vm().config, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
