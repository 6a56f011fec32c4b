// SPDX-License-Identifier: Apache-2.0
// What happens to an attachment during its detach, or while the detach waits in the queue.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct DetachTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path()};

    DetachTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    std::string attach() {
        bench.run(Attach{ask()});
        return bench.desired().attachments.begin()->first;
    }
    [[nodiscard]] std::map<std::string, PendingRun> runs() {
        return bench.engine.control().wait([](Control::State& state) { return state.runs(); });
    }
    void report(std::string const& attachment, std::string const& run) {
        Verification report;
        report.attachment = attachment;
        report.run = run;
        report.verdict = Verdict::pass;
        bench.engine.runs().verification_done(std::move(report));
    }
};

TEST_F(DetachTest, AReportThatComesMeanwhileStays) {
    auto const id = attach();
    auto const asked = bench.submit(Verify{id, 60}).value().operation->id;
    while (runs().empty()) std::this_thread::yield();
    hypervisor.detach = DetachBehaviour::times_out;
    hypervisor.on_perform = [&](HypervisorStep const&) { report(id, runs().at(id).run); };
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::failed);
    hypervisor.on_perform = {};
    EXPECT_EQ(bench.ended(asked).state, OperationState::succeeded);
    auto const attachment = bench.desired().attachments.at(id);
    EXPECT_EQ(attachment.state, AttachmentState::detaching);
    ASSERT_TRUE(attachment.verification);
    EXPECT_EQ(attachment.verification->verdict, Verdict::pass);
}

TEST_F(DetachTest, WhyAProofFailedStaysWithAVmThatDoesNotLetGo) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    hypervisor.detach = DetachBehaviour::times_out;
    bench.guest_reports(Verdict::fail);
    EXPECT_EQ(bench.run(Attach{spec}).state, OperationState::failed);
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(attachment.state, AttachmentState::detaching);
    ASSERT_TRUE(attachment.verification);
    EXPECT_EQ(attachment.verification->verdict, Verdict::fail);
}

// The second one waits for its claims until the first has ended.
TEST_F(DetachTest, OfTwoLiftsOneResetsTheVf) {
    auto const id = attach();
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    bench.run(Detach{id});
    kernel.fail_at.reset();
    ASSERT_TRUE(bench.desired().quarantine.contains({pf0, 0}));
    auto const resets = kernel.resets({pf0, 0});
    std::promise<void> begun;
    std::promise<void> go_on;
    kernel.on_perform = [&, first = true](KernelStep const&) mutable {
        if (!std::exchange(first, false)) return;
        begun.set_value();
        go_on.get_future().wait();
    };
    auto const first = bench.submit(LiftQuarantine{{pf0, 0}}).value().operation->id;
    begun.get_future().wait();
    auto const second = bench.submit(LiftQuarantine{{pf0, 0}}).value().operation->id;
    go_on.set_value();
    EXPECT_EQ(bench.ended(first).state, OperationState::succeeded);
    auto const late = bench.ended(second);
    kernel.on_perform = {};
    ASSERT_TRUE(late.problem);
    EXPECT_EQ(late.problem->problem, Problem::not_found);
    EXPECT_EQ(kernel.resets({pf0, 0}), resets + 1);
}

}  // namespace
}  // namespace vfmgr
