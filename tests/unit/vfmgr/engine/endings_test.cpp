// SPDX-License-Identifier: Apache-2.0
// Attachments that no VM holds any more are ended, with a clock that stands still until a test
// moves it.
#include <gmock/gmock.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct EndingsTest : testing::Test {
    TemporaryFolder folder;
    FakeClock clock;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::optional<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        bench.emplace(kernel, hypervisor, folder.path(), AskResponder{}, clock);
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
        bench->engine.start_observing();
    }
    [[nodiscard]] Attachment only() const { return bench->desired().attachments.begin()->second; }
    void keep_the_vf() {
        hypervisor.detach = DetachBehaviour::times_out;
        auto const failed = bench->run(Detach{only().id});
        EXPECT_EQ(failed.state, OperationState::failed);
        EXPECT_EQ(failed.problem->problem, Problem::timed_out);
        hypervisor.detach = DetachBehaviour::works;
    }
    void undefine() {
        hypervisor.stop(vm1);
        hypervisor.change([](HypervisorView& view) { view.vms.erase(vm1); });
    }
    [[nodiscard]] bool none_attached() const { return bench->desired().attachments.empty(); }
};

TEST_F(EndingsTest, AVmThatKeepsItsVfIsDetachingAndWithoutItAtItsNextStart) {
    keep_the_vf();
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::detaching);
    EXPECT_THAT(hypervisor.view().vms.at(vm1).live, SizeIs(1));
    EXPECT_THAT(hypervisor.view().vms.at(vm1).config, IsEmpty());
}

TEST_F(EndingsTest, AVfThatItsVmReleasesLaterIsCleanedThen) {
    keep_the_vf();
    auto const resets = kernel.resets({pf0, 0});
    hypervisor.stop(vm1);
    observe_until(*bench, [&] { return none_attached(); });
    EXPECT_EQ(kernel.resets({pf0, 0}), resets + 1);
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
    EXPECT_FALSE(kernel.view().pfs.at(pf0).vfs.at(0).driver);
}

// As when its VM was undefined while the detach was under way.
TEST_F(EndingsTest, ADetachThatFailsIsBegunAgainAMinuteLater) {
    keep_the_vf();
    auto const performed = hypervisor.performed();
    hypervisor.fail_at = Fault{performed, FaultPoint::before};
    hypervisor.change(
        [](HypervisorView& view) { swap(view.vms.at(vm1).live, view.vms.at(vm1).config); });
    kernel.release(only().vf_pci, kernel.view().pfs.at(pf0).vfs.at(0).holders.at(0).pid);
    observe_until(*bench, [&] { return hypervisor.performed() > performed; });
    hypervisor.fail_at.reset();
    for (int looks = 0; looks < 5; ++looks) observe_anew(*bench);
    EXPECT_EQ(hypervisor.performed(), performed + 1) << "not at each observation";
    EXPECT_EQ(only().state, AttachmentState::detaching);
    clock.advance(end_again_after);
    observe_until(*bench, [&] { return none_attached(); });
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
}

// A process that has the VF open uses it, whatever the XML says.
TEST_F(EndingsTest, AVfThatIsStillOpenIsNotCleaned) {
    keep_the_vf();
    auto const vf = only().vf_pci;
    kernel.hold(vf, {77, "qemu-system-x86"});
    hypervisor.stop(vm1);
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::detaching);
    kernel.release(vf, 77);
    observe_until(*bench, [&] { return none_attached(); });
}

TEST_F(EndingsTest, TheAttachmentsOfAVmThatLibvirtDoesNotKnowEndAfterAMinute) {
    undefine();
    observe_anew(*bench);
    clock.advance(vm_unknown_max - 1s);
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::attached);
    clock.advance(1s);
    observe_until(*bench, [&] { return none_attached(); });
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
}

TEST_F(EndingsTest, AVmThatIsDefinedAgainKeepsItsAttachments) {
    auto const was = hypervisor.view().vms.at(vm1);
    undefine();
    observe_anew(*bench);
    clock.advance(vm_unknown_max - 1s);
    hypervisor.add(was);
    observe_anew(*bench);
    undefine();
    observe_anew(*bench);
    clock.advance(2s);
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::attached) << "each absence counts from its begin";
}

TEST_F(EndingsTest, NothingEndsWhileLibvirtCannotBeAsked) {
    observe_anew(*bench);
    hypervisor.observe_error = Error{Problem::unavailable, "no libvirt", "start it"};
    observe_anew(*bench);
    clock.advance(vm_unknown_max * 2);
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::attached);
}

TEST_F(EndingsTest, AReleaseIsNotJudgedWhileLibvirtCannotBeAsked) {
    keep_the_vf();
    hypervisor.stop(vm1);
    hypervisor.observe_error = Error{Problem::unavailable, "no libvirt", "start it"};
    observe_anew(*bench);
    EXPECT_EQ(only().state, AttachmentState::detaching);
    hypervisor.observe_error.reset();
    observe_until(*bench, [&] { return none_attached(); });
}

}  // namespace
}  // namespace vfmgr
