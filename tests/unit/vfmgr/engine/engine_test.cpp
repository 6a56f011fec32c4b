// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/engine/restore.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct EngineTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};

    EngineTest() {
        hypervisor.add(make_vm("vm1", vm1));
        hypervisor.add(make_vm("vm2", vm2));
        EXPECT_TRUE(hypervisor.start(vm1));
        EXPECT_TRUE(hypervisor.start(vm2));
    }
    [[nodiscard]] VfState vf(std::uint16_t index) const {
        return kernel.view().pfs.at(pf0).vfs.at(index);
    }
};

TEST_F(EngineTest, AttachesAndDetachesClean) {
    Bench bench(kernel, hypervisor, folder.path());
    EXPECT_EQ(bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)}).state, OperationState::succeeded);
    auto const fresh = kernel.view();
    auto const attached = bench.run(Attach{ask()});
    ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(attachment.state, AttachmentState::attached);
    EXPECT_EQ(vf(0).driver, "vfio-pci");
    EXPECT_EQ(vf(0).settings.mac, attachment.settings.mac);
    EXPECT_EQ(vf(0).settings.trust, true);
    EXPECT_EQ(hypervisor.view().vms.at(vm1).live.size(), 1U);
    EXPECT_EQ(hypervisor.view().vms.at(vm1).config.size(), 1U);

    auto const back = bench.run(Detach{attachment.id});
    ASSERT_EQ(back.state, OperationState::succeeded) << back.problem->detail;
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_FALSE(bench.desired().pfs.at(pf0).base);
    EXPECT_EQ(text(kernel.view()), text(fresh)) << "VFs, links, addresses: all as before";
    EXPECT_EQ(kernel.resets({pf0, 0}), 1U);
    EXPECT_THAT(hypervisor.view().vms.at(vm1).live, IsEmpty());
    EXPECT_THAT(hypervisor.view().vms.at(vm1).config, IsEmpty());
}

TEST_F(EngineTest, DryRunChangesNothingAndTellsTheTruth) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const before = kernel.view();
    auto const steps = kernel.performed();
    Intent dry;
    dry.dry_run = true;
    auto const promised = bench.submit(Attach{ask()}, dry).value();
    EXPECT_EQ(kernel.performed(), steps);
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    bench.run(Attach{ask()});
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(attachment.settings, promised.attachment->settings);
    EXPECT_EQ(attachment.address, promised.attachment->address);
    EXPECT_NE(kernel.view(), before);
}

// The view may be as old as the last observation; a refusal is never older than the request.
TEST_F(EngineTest, WhatCameAfterTheLastLookIsFound) {
    Bench bench(kernel, hypervisor, folder.path());
    auto const second = make_igb_pf("0000:02:00.0", "enp2s0");
    auto const other = PciAddress::parse("0000:02:00.0").value();
    bench.engine.start_observing();
    kernel.change([&](KernelView& host) { host.pfs[other] = second; });
    EXPECT_EQ(bench.run(ReplacePfSpec{other, spec_with_vfs(7)}).state, OperationState::succeeded);
    kernel.change([&](KernelView& host) { host.pfs.erase(other); });
    auto const looks = kernel.observed();
    EXPECT_EQ(
        bench.submit(ReplacePfSpec{PciAddress::parse("0000:03:00.0").value(), {}}).error().problem,
        Problem::not_found);
    EXPECT_GT(kernel.observed(), looks) << "refused without a look";
}

TEST_F(EngineTest, EveryCommandIsAnsweredThoughTheEngineEnds) {
    constexpr int commands = 50;
    std::atomic<int> answers = 0;
    {
        Bench bench(kernel, hypervisor, folder.path());
        bench.engine.start_observing();
        for (int i = 0; i < commands; ++i) {
            Intent intent;
            intent.requested_by = "uid:" + std::to_string(i);  // the queue limits each requester
            bench.engine.submit(Detach{"none"}, intent, [&](Result<Answer> const& answer) {
                EXPECT_EQ(answer.error().problem, Problem::not_found);
                ++answers;
            });
        }
    }
    EXPECT_EQ(answers, commands);
}

TEST_F(EngineTest, ARefusedAttributeUndoesEverything) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const before = kernel.view();
    auto spec = ask();
    spec.settings.vlan = Vlan{100, 0, VlanProtocol::dot1ad};
    auto const failed = bench.run(Attach{spec});
    EXPECT_EQ(failed.state, OperationState::failed);
    EXPECT_EQ(failed.problem->problem, Problem::kernel_refused);
    EXPECT_EQ(text(kernel.view()), text(before));
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
}

TEST_F(EngineTest, ARefusalThatBestEffortAllowsIsToldAndKept) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto spec = ask();
    spec.settings.link_state = LinkState::enable;
    spec.best_effort = {"link_state"};
    auto const attached = bench.run(Attach{spec});
    ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
    std::vector<std::string> remarks;
    for (auto const& step : attached.steps)
        remarks.insert(remarks.end(), step.remarks.begin(), step.remarks.end());
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_THAT(remarks[0], AllOf(HasSubstr("link_state"), HasSubstr("EOPNOTSUPP")));
    EXPECT_EQ(vf(0).settings.trust, true);
}

TEST_F(EngineTest, ProvedMeansTheHostSaidPass) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto spec = ask();
    spec.verify = VerifyMode::required;
    bench.guest_reports(Verdict::pass);
    auto const attached = bench.run(Attach{spec});
    ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(attachment.verification->verdict, Verdict::pass);
    EXPECT_THAT(*bench.engine.snapshot().runs, IsEmpty());
}

TEST_F(EngineTest, AFailedProofTakesTheVfBack) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const before = kernel.view();
    auto spec = ask();
    spec.verify = VerifyMode::required;
    bench.guest_reports(Verdict::fail);
    auto const attached = bench.run(Attach{spec});
    EXPECT_EQ(attached.problem->problem, Problem::guest_refused);
    EXPECT_THAT(attached.problem->detail, HasSubstr("rdma_write fail: bytes differ"));
    EXPECT_EQ(text(kernel.view()), text(before));
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
}

TEST_F(EngineTest, ASilentGuestTakesTheVfBack) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const before = kernel.view();
    auto spec = ask();
    spec.verify = VerifyMode::required;
    spec.verify_timeout_seconds = 1;
    auto const attached = bench.run(Attach{spec});
    EXPECT_EQ(attached.problem->problem, Problem::timed_out);
    EXPECT_THAT(attached.problem->detail, HasSubstr("VM vm1 did not report within 1 s"));
    EXPECT_EQ(text(kernel.view()), text(before));
}

TEST_F(EngineTest, AReportForAnotherRunIsNotThisOnes) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(Attach{ask()});
    auto const id = bench.desired().attachments.begin()->first;
    Verification forged;
    forged.attachment = id;
    forged.run = "0123456789abcdef";
    forged.verdict = Verdict::pass;
    bench.engine.runs().verification_done(forged);
    auto const proved = bench.run(Verify{id, 1});
    EXPECT_EQ(proved.problem->problem, Problem::timed_out);
    EXPECT_FALSE(bench.desired().attachments.at(id).verification);
}

TEST_F(EngineTest, AVmThatDoesNotLetGoKeepsItsVf) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(Attach{ask()});
    auto const id = bench.desired().attachments.begin()->first;
    hypervisor.detach = DetachBehaviour::times_out;
    auto const back = bench.run(Detach{id});
    EXPECT_EQ(back.state, OperationState::failed);
    EXPECT_EQ(bench.desired().attachments.at(id).state, AttachmentState::detaching);
    EXPECT_EQ(vf(0).driver, "vfio-pci");
    hypervisor.detach = DetachBehaviour::works;
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::succeeded);
}

TEST_F(EngineTest, AVfThatCannotBeCleanedIsQuarantinedUntilAnAdminLiftsIt) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(Attach{ask()});
    auto const id = bench.desired().attachments.begin()->first;
    // The first kernel step of a detach is the reset.
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::failed);
    kernel.fail_at.reset();
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    auto const quarantine = bench.desired().quarantine.at({pf0, 0});
    EXPECT_THAT(quarantine.residue, testing::Not(IsEmpty()));
    bench.run(Attach{ask()});
    EXPECT_EQ(bench.desired().attachments.begin()->second.vf.index, 1) << "0 is not attached";
    EXPECT_EQ(bench.run(LiftQuarantine{{pf0, 0}}).state, OperationState::succeeded);
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
    EXPECT_FALSE(vf(0).driver);
}

TEST_F(EngineTest, AReleaseIsCertifiedByALookAtTheVf) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    ASSERT_FALSE(bench.run(Attach{ask()}).certificate);
    auto const attachment = bench.desired().attachments.begin()->second;
    auto const back = bench.run(Detach{attachment.id});
    ASSERT_TRUE(back.certificate);
    EXPECT_EQ(back.certificate->attachment, attachment.id);
    EXPECT_EQ(back.certificate->vf, attachment.vf);
    EXPECT_EQ(back.certificate->settings, vf(0).settings);
}

// Every step reports success, and then the attachment's MAC is there again.
TEST_F(EngineTest, AVfThatLooksAttachedAfterItsReleaseIsQuarantined) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench.run(Attach{ask()});
    auto const attachment = bench.desired().attachments.begin()->second;
    kernel.on_perform = [&](KernelStep const& step) {
        if (!std::holds_alternative<RemoveVlanInterface>(step)) return;
        kernel.change([&](KernelView& view) {
            view.pfs.at(pf0).vfs.at(0).settings.mac = attachment.settings.mac;
        });
    };
    auto const back = bench.run(Detach{attachment.id});
    kernel.on_perform = {};
    EXPECT_EQ(back.state, OperationState::failed);
    EXPECT_FALSE(back.certificate);
    EXPECT_THAT(back.problem->detail, testing::HasSubstr("is in quarantine: still to do: "));
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_TRUE(bench.desired().quarantine.contains(attachment.vf));
    auto const lifted = bench.run(LiftQuarantine{attachment.vf});
    EXPECT_EQ(lifted.certificate->settings.mac, MacAddress{});
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
}

TEST_F(EngineTest, TwoAttachmentsShareTheInterfaceAndTheFirstsEndDoesNotBreakTheSecond) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const bare = kernel.view();
    bench.run(Attach{ask("vm1")});
    auto const first = bench.desired().attachments.begin()->first;
    bench.run(Attach{ask("vm2")});
    ASSERT_EQ(bench.desired().attachments.size(), 2U);
    bench.run(Detach{first});
    auto const interfaces = kernel.view().pfs.at(pf0).interfaces;
    ASSERT_EQ(interfaces.size(), 2U);
    EXPECT_EQ(interfaces[1].peers.size(), 1U);
    EXPECT_TRUE(kernel.view().pfs.at(pf0).info.rdma_device);
    bench.run(Detach{bench.desired().attachments.begin()->first});
    EXPECT_EQ(text(kernel.view()), text(bare));
}

TEST_F(EngineTest, ConflictingOperationsQueueAndAllEnd) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    std::vector<std::string> operations;
    hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).free_pcie_ports = 8; });
    for (int i = 0; i < 7; ++i) {
        auto spec = ask();
        spec.vf = static_cast<std::uint16_t>(i);
        operations.push_back(bench.submit(Attach{spec})->operation->id);
    }
    for (auto const& id : operations)
        EXPECT_EQ(bench.ended(id).state, OperationState::succeeded)
            << bench.ended(id).problem->detail;
    EXPECT_EQ(bench.desired().attachments.size(), 7U);
}

TEST_F(EngineTest, RestoreBringsBackWhatABootLost) {
    {
        Bench bench(kernel, hypervisor, folder.path());
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        bench.run(Attach{ask()});
    }
    auto const before = kernel.view();
    FakeKernel booted{igb_host()};
    auto control = open_control(folder.path());
    auto const said = restore(booted, *control, system_clock()).value();
    ASSERT_EQ(said.size(), 1U);
    auto expected = before;
    expected.pfs.at(pf0).vfs[0].holders.clear();  // no VM runs yet
    EXPECT_EQ(text(booted.view()), text(expected));
    restore(booted, *control, system_clock()).value();
    EXPECT_EQ(text(booted.view()), text(expected)) << "a second time changes nothing";
}

TEST_F(EngineTest, AnIdempotencyKeyMakesOneAttachment) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    Intent intent;
    intent.idempotency_key = "uid:0 k1";
    intent.request_hash = "h1";
    auto const first = bench.submit(Attach{ask()}, intent).value();
    auto const again = bench.submit(Attach{ask()}, intent).value();
    EXPECT_EQ(first.operation->id, again.operation->id);
    bench.ended(first.operation->id);
    EXPECT_EQ(bench.desired().attachments.size(), 1U);
    intent.request_hash = "h2";
    EXPECT_EQ(bench.submit(Attach{ask("vm2")}, intent).error().problem, Problem::conflict);
}

TEST_F(EngineTest, AStaleRevisionIsRefused) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    Intent intent;
    intent.if_match = 0;
    EXPECT_EQ(bench.submit(ReplacePfSpec{pf0, spec_with_vfs(4)}, intent).error().problem,
              Problem::precondition_failed);
    intent.if_match = 1;
    EXPECT_TRUE(bench.submit(ReplacePfSpec{pf0, spec_with_vfs(4)}, intent));
}

}  // namespace
}  // namespace vfmgr
