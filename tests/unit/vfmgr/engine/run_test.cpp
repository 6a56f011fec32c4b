// SPDX-License-Identifier: Apache-2.0
// Runs that a guest starts, and verdicts that the disk has no room for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/file_size_limit.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::IsEmpty;

struct RunTest : testing::Test {
    TemporaryFolder folder;
    FakeClock clock;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path(), AskResponder{}, clock};
    std::string id;

    RunTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        bench.run(Attach{ask()});
        id = bench.desired().attachments.begin()->first;
    }
    [[nodiscard]] Result<void> begin(std::string const& run, char const* vm = vm1) {
        auto const now = clock.now();
        return bench.engine.runs().begin_run(id, vm, {run, "nonce", now, now + 10min, {}, {}});
    }
    void report(std::string const& run) {
        Verification report;
        report.attachment = id;
        report.run = run;
        report.verdict = Verdict::pass;
        bench.engine.runs().verification_done(std::move(report));
    }
    // A watcher leaves a deadline's work to a task.
    void settle() {
        for (int i = 0; i < 3; ++i)
            bench.engine.control().wait([](Control::State&) { return true; });
    }
    std::map<std::string, PendingRun> runs() {
        settle();
        return *bench.engine.snapshot().runs;
    }
    std::optional<Verification> verdict() {
        settle();
        return bench.desired().attachments.at(id).verification;
    }
};

TEST_F(RunTest, AGuestsRunIsOverAtItsEnd) {
    ASSERT_TRUE(begin("theirs"));
    clock.advance(10min - 1s);
    EXPECT_TRUE(runs().contains(id));
    clock.advance(1s);
    EXPECT_THAT(runs(), IsEmpty());
    report("theirs");
    EXPECT_FALSE(verdict()) << "it is too late";
}

TEST_F(RunTest, ALaterRunHasItsWholeTime) {
    ASSERT_TRUE(begin("first"));
    clock.advance(5min);
    ASSERT_TRUE(begin("second"));
    clock.advance(5min);
    EXPECT_EQ(runs().at(id).run, "second");
    clock.advance(5min);
    EXPECT_THAT(runs(), IsEmpty());
}

TEST_F(RunTest, OnlyItsVmBeginsARun) {
    EXPECT_EQ(begin("theirs", vm2).error().problem, Problem::not_found);
    EXPECT_THAT(runs(), IsEmpty());
}

TEST_F(RunTest, AVerdictThatTheDiskHasNoRoomForIsKept) {
    ASSERT_TRUE(begin("theirs"));
    std::optional<test::FileSizeLimit> full(0);
    report("theirs");
    EXPECT_FALSE(verdict());
    EXPECT_THAT(runs(), IsEmpty()) << "it has its report";
    EXPECT_EQ(begin("next").error().problem, Problem::unavailable);
    full.reset();
    clock.advance(1s);
    ASSERT_TRUE(verdict());
    EXPECT_EQ(verdict()->run, "theirs");
    EXPECT_TRUE(begin("next"));
}

TEST_F(RunTest, AVerdictOutlivesItsAttachment) {
    ASSERT_TRUE(begin("theirs"));
    std::optional<test::FileSizeLimit> full(0);
    report("theirs");
    auto const back = bench.submit(Detach{id});
    EXPECT_FALSE(back) << "nothing can be begun";
    full.reset();
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::succeeded);
    clock.advance(1s);
    settle();
    auto const history = bench.engine.control().wait(
        [](Control::State& state) { return state.store.verifications(VfId{pf0, 0}, {}); });
    ASSERT_EQ(history->items.size(), 1U);
    EXPECT_EQ(history->items.front().run, "theirs");
}

}  // namespace
}  // namespace vfmgr
