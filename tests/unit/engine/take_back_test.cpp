// SPDX-License-Identifier: Apache-2.0
// What happens to a lease while it is taken back, or while that waits in the queue.
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct TakeBackTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path()};

    TakeBackTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    std::string lend() {
        bench.run(Lend{ask()});
        return bench.desired().attachments.begin()->first;
    }
    [[nodiscard]] std::map<std::string, PendingRun> runs() {
        return bench.engine.control().wait([](Control::State& state) { return state.runs; });
    }
    void report(std::string const& lease, std::string const& run) {
        Verification report;
        report.attachment = lease;
        report.run = run;
        report.verdict = Verdict::pass;
        bench.engine.verification_done(std::move(report));
    }
};

TEST_F(TakeBackTest, AReportThatComesMeanwhileStays) {
    auto const id = lend();
    auto const asked = bench.submit(Verify{id, 60}).value().operation->id;
    while (runs().empty()) std::this_thread::yield();
    hypervisor.detach = DetachBehaviour::times_out;
    hypervisor.on_perform = [&](HypervisorStep const&) { report(id, runs().at(id).run); };
    EXPECT_EQ(bench.run(Release{id}).state, OperationState::failed);
    hypervisor.on_perform = {};
    EXPECT_EQ(bench.ended(asked).state, OperationState::succeeded);
    auto const lease = bench.desired().attachments.at(id);
    EXPECT_EQ(lease.state, AttachmentState::attached);
    ASSERT_TRUE(lease.verification);
    EXPECT_EQ(lease.verification->verdict, Verdict::pass);
}

TEST_F(TakeBackTest, WhyAProofFailedStaysWithAVmThatDoesNotLetGo) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    hypervisor.detach = DetachBehaviour::times_out;
    bench.guest_reports(Verdict::fail);
    EXPECT_EQ(bench.run(Lend{spec}).state, OperationState::failed);
    auto const lease = bench.desired().attachments.begin()->second;
    EXPECT_EQ(lease.state, AttachmentState::attached);
    ASSERT_TRUE(lease.verification);
    EXPECT_EQ(lease.verification->verdict, Verdict::fail);
}

// The second one waits for its claims until the first has ended.
TEST_F(TakeBackTest, OfTwoLiftsOneResetsTheVf) {
    auto const id = lend();
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    bench.run(Release{id});
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
