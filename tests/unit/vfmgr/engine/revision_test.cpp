// SPDX-License-Identifier: Apache-2.0
// Concurrent changes of one object: none is lost, and an ETag is never used twice.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;

struct RevisionTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;
    std::promise<void> begun;
    std::promise<void> go_on;

    RevisionTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
    }
    void SetUp() override { open(); }
    void open() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    }
    [[nodiscard]] std::uint64_t revision() const { return bench->desired().pfs.at(pf0).revision; }
    static Intent if_match(std::uint64_t revision) {
        Intent intent;
        intent.if_match = revision;
        return intent;
    }
    // The next operation holds its claim at its first step until go_on.
    void hold_the_first_step() {
        kernel.on_perform = [this, first = true](KernelStep const&) mutable {
            if (!std::exchange(first, false)) return;
            begun.set_value();
            go_on.get_future().wait();
        };
    }
};

TEST_F(RevisionTest, OfTwoChangesWithOneEtagOneWins) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    auto const from = if_match(revision());
    hold_the_first_step();
    auto const first = bench->submit(ReplacePfSpec{pf0, spec_with_vfs(3)}, from).value();
    begun.get_future().wait();
    auto const second = bench->submit(ReplacePfSpec{pf0, spec_with_vfs(4)}, from).value();
    auto const third = bench->submit(ForgetPf{pf0}, from).value();
    go_on.set_value();
    EXPECT_EQ(bench->ended(first.operation->id).state, OperationState::succeeded);
    for (auto const& late : {second, third}) {
        ASSERT_TRUE(late.operation);
        auto const lost = bench->ended(late.operation->id);
        ASSERT_TRUE(lost.problem);
        EXPECT_EQ(lost.problem->problem, Problem::precondition_failed);
    }
    EXPECT_EQ(bench->desired().pfs.at(pf0).spec.num_vfs, 3);
}

TEST_F(RevisionTest, AChangeMayBeBasedOnSeveral) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    Intent intent;
    intent.if_match = IfMatch(std::vector<std::uint64_t>{8, 9});
    auto const refused = bench->submit(ReplacePfSpec{pf0, spec_with_vfs(3)}, intent).error();
    EXPECT_EQ(refused.problem, Problem::precondition_failed);
    EXPECT_EQ(refused.revision, revision());
    EXPECT_THAT(refused.detail, testing::HasSubstr("is at revision 1, not 8 or 9"));
    intent.if_match = IfMatch(std::vector<std::uint64_t>{});  // weak ones, and others' only
    EXPECT_EQ(bench->submit(ForgetPf{pf0}, intent).error().problem, Problem::precondition_failed);
    intent.if_match = IfMatch(std::vector<std::uint64_t>{8, revision()});
    EXPECT_TRUE(bench->submit(ReplacePfSpec{pf0, spec_with_vfs(3)}, intent));
}

TEST_F(RevisionTest, AChangeIsAnsweredWithItsStepsAndItsPlan) {
    hold_the_first_step();
    auto const accepted = bench->submit(ReplacePfSpec{pf0, spec_with_vfs(3)}).value();
    EXPECT_EQ(accepted.operation->steps.size(), 1U);
    EXPECT_EQ(accepted.plan->steps.size(), 1U);
    go_on.set_value();
    bench->ended(accepted.operation->id);
}

TEST_F(RevisionTest, APfIsNotForgottenUnderAAttach) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    hold_the_first_step();
    auto const attached = bench->submit(Attach{ask()}).value();
    begun.get_future().wait();
    EXPECT_EQ(bench->submit(ForgetPf{pf0}).error().problem, Problem::conflict);
    go_on.set_value();
    EXPECT_EQ(bench->ended(attached.operation->id).state, OperationState::succeeded);
}

TEST_F(RevisionTest, NeverBeginsAnew) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(3)});
    auto const old = revision();
    EXPECT_EQ(bench->run(ForgetPf{pf0}).state, OperationState::succeeded);
    EXPECT_FALSE(bench->desired().pfs.contains(pf0));
    open();
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    EXPECT_GT(revision(), old);
}

// The VM is asked twice; the first run times out while the second is pending.
TEST_F(RevisionTest, ATimedOutVerificationEndsItsOwnRunOnly) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    bench->run(Attach{ask()});
    auto const id = bench->desired().attachments.begin()->first;
    auto const first = bench->submit(Verify{id, 1}).value().operation->id;
    bench->engine.control().watch(Deadline::max(), [id](Control::State& state, Watch) {
        if (!state.runs().contains(id)) return false;
        state.set_run(id, PendingRun{"newer", "nonce", {}, Time::max(), Profile::default_, {}});
        return true;
    });
    EXPECT_EQ(bench->ended(first).problem->problem, Problem::timed_out);
    auto const runs = bench->engine.snapshot().runs;
    ASSERT_TRUE(runs->contains(id));
    EXPECT_EQ(runs->at(id).run, "newer");
}

}  // namespace
}  // namespace vfmgr
