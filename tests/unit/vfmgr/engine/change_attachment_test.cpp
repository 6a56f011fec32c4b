// SPDX-License-Identifier: Apache-2.0
// A change of an attachment under its VM, from the request to what is stored.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct ChangeTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;
    std::string id;

    ChangeTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, {PfMode::enforce, 7}});
        auto const attached = bench->run(Attach{ask()});
        EXPECT_EQ(attached.state, OperationState::succeeded);
        id = bench->desired().attachments.begin()->first;
    }
    [[nodiscard]] Attachment attachment() const { return bench->desired().attachments.at(id); }
    [[nodiscard]] VfSpec reported() const {
        return kernel.view().pfs.at(pf0).vfs.at(attachment().vf.index).settings;
    }
    static AttachmentPatch distrusted() {
        AttachmentPatch patch;
        patch.settings.set.trust = false;
        return patch;
    }
    Operation change(AttachmentPatch patch) {
        return bench->run(ChangeAttachment{id, std::move(patch)});
    }
    void prove(Verdict verdict) {
        bench->guest_reports(verdict);
        bench->run(Verify{id, 60, Profile::default_, {}});
    }
};

TEST_F(ChangeTest, IsAnOperationOfItsOwnAndKeepsTheVm) {
    auto const vm_before = hypervisor.view();
    auto const done = change(distrusted());
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    EXPECT_EQ(done.kind, OperationKind::change_attachment);
    EXPECT_EQ(done.subject, "/v1/attachments/" + id);
    EXPECT_EQ(done.vm_uuid, vm1);
    ASSERT_EQ(done.steps.size(), 1U);
    EXPECT_THAT(done.steps[0].sentence, HasSubstr("trust off"));
    EXPECT_EQ(reported().trust, false);
    EXPECT_EQ(attachment().settings.trust, false);
    EXPECT_EQ(hypervisor.view().vms, vm_before.vms);
    bench->engine.control().wait([&](Control::State& state) {
        auto const events = state.store.events(id).value();
        std::vector<EventKind> kinds;
        for (auto const& event : events) kinds.push_back(event.kind);
        EXPECT_THAT(kinds, Contains(EventKind::attachment_changed));
        return true;
    });
}

// The new values are what drift is judged by, and repaired to.
TEST_F(ChangeTest, ItsValuesAreWhatIsRepaired) {
    change(distrusted());
    kernel.change([](KernelView& view) { view.pfs.at(pf0).vfs.at(0).settings.trust = true; });
    HostView const host{kernel.view(), hypervisor.view()};
    auto const drift = find_drift(host, bench->desired());
    ASSERT_EQ(drift.size(), 1U);
    EXPECT_THAT(drift[0].sentence, HasSubstr("has trust on instead of trust off"));
    auto const repair = plan_repair(host, bench->desired(), pf0).value();
    ASSERT_EQ(repair.steps.size(), 1U);
    EXPECT_THAT(sentence(repair.steps[0]), HasSubstr("trust off"));
}

TEST_F(ChangeTest, DetachRestoresWhatWasBeforeTheAttachment) {
    AttachmentPatch patch;
    patch.settings.set.spoofchk = false;
    ASSERT_EQ(change(patch).state, OperationState::succeeded);
    EXPECT_EQ(reported().spoofchk, false);
    ASSERT_EQ(bench->run(Detach{id}).state, OperationState::succeeded);
    EXPECT_EQ(kernel.view().pfs.at(pf0).vfs.at(0).settings, driver_model("igb").new_vf);
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
}

TEST_F(ChangeTest, OfNothingBeginsNoOperation) {
    auto const steps = kernel.performed();
    auto const answer = bench->submit(ChangeAttachment{id, {}}).value();
    EXPECT_FALSE(answer.operation);
    EXPECT_EQ(kernel.performed(), steps);
}

TEST_F(ChangeTest, ADryRunShowsTheAttachmentAndChangesNothing) {
    Intent intent;
    intent.dry_run = true;
    auto const answer = bench->submit(ChangeAttachment{id, distrusted()}, intent).value();
    EXPECT_EQ(answer.attachment->settings.trust, false);
    EXPECT_EQ(answer.plan->steps.size(), 1U);
    EXPECT_EQ(answer.revision, revision_of(attachment(), ""));
    EXPECT_EQ(attachment().settings.trust, true);
}

TEST_F(ChangeTest, IsBasedOnTheRevisionThatItNames) {
    Intent intent;
    intent.if_match = IfMatch(revision_of(attachment(), ""));
    auto first = bench->submit(ChangeAttachment{id, distrusted()}, intent);
    ASSERT_TRUE(first) << first.error().detail;
    EXPECT_EQ(bench->ended(first->operation->id).state, OperationState::succeeded);
    AttachmentPatch other;
    other.settings.set.spoofchk = false;
    auto const second = bench->submit(ChangeAttachment{id, other}, intent);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().problem, Problem::precondition_failed);
}

TEST_F(ChangeTest, LeavesAVfThatTheVmLostAlone) {
    hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).live.clear(); });
    auto const done = change(distrusted());
    EXPECT_EQ(done.state, OperationState::failed);
    EXPECT_THAT(done.problem->detail, HasSubstr("lacks the device"));
    EXPECT_EQ(reported().trust, true);
}

// --- the verdict ----------------------------------------------------------------------------

TEST_F(ChangeTest, AnEarlierVerdictDoesNotStand) {
    prove(Verdict::pass);
    ASSERT_TRUE(attachment().verification);
    change(distrusted());
    EXPECT_FALSE(attachment().verification);
    bench->engine.control().wait([&](Control::State& state) {
        EXPECT_EQ(state.store.verifications(id, {}).value().items.size(), 1U) << "history";
        return true;
    });
}

TEST_F(ChangeTest, ARunThatBeganBeforeProvesNothing) {
    auto const begun = bench->submit(Verify{id, 60, Profile::default_, {}}).value();
    std::promise<void> runs;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (!state.runs().contains(id)) return false;
        runs.set_value();
        return true;
    });
    runs.get_future().get();
    ASSERT_EQ(change(distrusted()).state, OperationState::succeeded);
    auto const verified = bench->ended(begun.operation->id);
    EXPECT_EQ(verified.state, OperationState::failed);
    EXPECT_THAT(verified.problem->detail, HasSubstr("was changed while it was verified"));
    bench->guest_reports(Verdict::pass);  // of the run before
    bench->engine.control().wait([](Control::State&) { return true; });
    EXPECT_FALSE(attachment().verification);
}

TEST_F(ChangeTest, IsProvedIfThatIsRequired) {
    auto patch = distrusted();
    patch.verify = VerifyMode::required;
    bench->guest_reports(Verdict::pass);
    auto const done = change(patch);
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    EXPECT_EQ(attachment().verification->verdict, Verdict::pass);
    EXPECT_EQ(attachment().settings.trust, false);
}

TEST_F(ChangeTest, IsChangedBackIfItIsNotProved) {
    auto const before = attachment();
    auto patch = distrusted();
    patch.settings.set.mac = MacAddress{{0x02, 0, 0, 0, 0, 9}};
    patch.allow_reset = true;
    patch.verify = VerifyMode::required;
    bench->guest_reports(Verdict::fail);
    auto const done = change(patch);
    ASSERT_EQ(done.state, OperationState::failed);
    EXPECT_EQ(done.problem->problem, Problem::guest_refused);
    EXPECT_THAT(done.problem->detail, HasSubstr("the VF has its earlier settings again"));
    EXPECT_EQ(attachment().settings, before.settings);
    EXPECT_EQ(attachment().spec, before.spec);
    EXPECT_EQ(attachment().baseline, before.baseline);
    EXPECT_EQ(reported().mac, before.settings.mac);
    EXPECT_EQ(reported().trust, true);
    auto const view = kernel.view();
    auto const* const on = find_interface(view.pfs.at(pf0), {pf0, 100});
    ASSERT_TRUE(on);
    EXPECT_EQ(on->peers.at(0).mac, before.settings.mac);
}

// What is stored stands: nobody could tell which of both the VM had proved.
TEST_F(ChangeTest, StandsIfVfmgrdEndsBeforeItIsProved) {
    auto patch = distrusted();
    patch.verify = VerifyMode::required;
    auto const begun = bench->submit(ChangeAttachment{id, patch}).value();
    std::promise<void> runs;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (!state.runs().contains(id)) return false;
        runs.set_value();
        return true;
    });
    runs.get_future().get();
    bench.reset();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    auto const ended = bench->ended(begun.operation->id);
    EXPECT_EQ(ended.state, OperationState::failed);
    EXPECT_THAT(ended.problem->detail, HasSubstr("nothing on the host had to be undone"));
    EXPECT_EQ(attachment().settings.trust, false);
    EXPECT_EQ(reported().trust, false);
    EXPECT_FALSE(attachment().verification);
}

}  // namespace
}  // namespace vfmgr
