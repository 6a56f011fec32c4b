// SPDX-License-Identifier: Apache-2.0
// Operations that a client cancels: they stop where nothing is left half done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

struct CancelTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::promise<void> begun, go_on;
    bool held = false;
    Bench bench{kernel, hypervisor, folder.path()};

    CancelTest() {
        for (auto const& [name, uuid] : {std::pair{"vm1", vm1}, std::pair{"vm2", vm2}}) {
            hypervisor.add(make_vm(name, uuid));
            EXPECT_TRUE(hypervisor.start(uuid));
        }
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    void hold_the_next_step() {
        kernel.on_perform = [this, next = go_on.get_future().share()](KernelStep const&) {
            if (std::exchange(held, true)) return;
            begun.set_value();
            next.wait();
        };
    }
    Result<Operation> cancel(std::string const& id, std::optional<std::string> only_of = {}) {
        std::promise<Result<Operation>> answer;
        bench.engine.cancel(id, std::move(only_of)).ask({"uid:0"}, [&](Result<Operation> found) {
            answer.set_value(std::move(found));
        });
        return answer.get_future().get();
    }
    std::string begin(Command command) {
        return bench.submit(std::move(command), Intent{false, "uid:7", {}, {}, {}})
            .value()
            .operation->id;
    }
    void until_a_run_is_pending() {
        std::promise<void> pending;
        bench.engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
            if (state.runs().empty()) return false;
            return pending.set_value(), true;
        });
        pending.get_future().get();
    }
    void expect_cancelled(std::string const& id) {
        auto const ended = bench.ended(id);
        ASSERT_EQ(ended.state, OperationState::failed);
        EXPECT_EQ(ended.problem->problem, Problem::cancelled) << ended.problem->detail;
    }
};

TEST_F(CancelTest, OneThatHasBegunUndoesItsSteps) {
    auto const before = text(kernel.view());
    hold_the_next_step();
    auto const id = begin(Attach{ask()});
    begun.get_future().wait();
    auto const answered = cancel(id).value();
    EXPECT_EQ(answered.state, OperationState::running) << "it ends when the step has ended";
    go_on.set_value();
    expect_cancelled(id);
    EXPECT_EQ(text(kernel.view()), before);
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
    auto const steps = bench.ended(id).steps;
    EXPECT_EQ(steps.at(0).state, StepState::undone);
    EXPECT_EQ(steps.at(1).state, StepState::planned);
}

TEST_F(CancelTest, TheLastStepIsUndoneToo) {
    auto const before = text(kernel.view());
    hold_the_next_step();
    auto const id = begin(ReplacePfSpec{pf0, spec_with_vfs(3)});
    begun.get_future().wait();
    ASSERT_EQ(bench.engine.snapshot().desired->pfs.at(pf0).spec.num_vfs, 2);
    ASSERT_TRUE(cancel(id));
    go_on.set_value();
    expect_cancelled(id);
    EXPECT_EQ(text(kernel.view()), before);
    EXPECT_EQ(bench.desired().pfs.at(pf0).spec.num_vfs, 2);
}

TEST_F(CancelTest, OneThatWaitsBehindAnotherDoesNothing) {
    hold_the_next_step();
    auto const first = begin(Attach{ask()});
    begun.get_future().wait();
    auto const second = begin(Attach{ask("vm2")});
    ASSERT_TRUE(cancel(second));
    expect_cancelled(second);  // while the first one still holds the PF
    go_on.set_value();
    EXPECT_EQ(bench.ended(first).state, OperationState::succeeded);
    EXPECT_EQ(bench.desired().attachments.size(), 1U);
}

TEST_F(CancelTest, OneThatWaitsForItsVmTakesTheVfBack) {
    auto wanted = ask();
    wanted.verify = VerifyMode::required;
    auto const id = begin(Attach{wanted});
    until_a_run_is_pending();
    ASSERT_TRUE(cancel(id));
    expect_cancelled(id);
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_THAT(*bench.engine.snapshot().runs, IsEmpty());
}

TEST_F(CancelTest, AVerificationLeavesItsAttachment) {
    bench.run(Attach{ask()});
    auto const attachment = bench.desired().attachments.begin()->first;
    auto const id = begin(Verify{attachment, 600});
    until_a_run_is_pending();
    ASSERT_TRUE(cancel(id));
    expect_cancelled(id);
    EXPECT_TRUE(bench.desired().attachments.contains(attachment));
    EXPECT_THAT(*bench.engine.snapshot().runs, IsEmpty()) << "its session would go on";
}

TEST_F(CancelTest, ADetachGoesOn) {
    bench.run(Attach{ask()});
    hold_the_next_step();
    auto const id = begin(Detach{bench.desired().attachments.begin()->first});
    begun.get_future().wait();
    auto const refused = cancel(id);
    go_on.set_value();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_THAT(refused.error().detail, HasSubstr("can't be cancelled"));
    EXPECT_EQ(bench.ended(id).state, OperationState::succeeded);
}

TEST_F(CancelTest, IsRefusedForOthersAndForWhatHasEnded) {
    hold_the_next_step();
    auto const id = begin(Attach{ask()});
    begun.get_future().wait();
    EXPECT_EQ(cancel(id, "uid:8").error().problem, Problem::forbidden);
    EXPECT_EQ(cancel("00000000").error().problem, Problem::not_found);
    go_on.set_value();
    EXPECT_EQ(bench.ended(id).state, OperationState::succeeded);
    EXPECT_EQ(cancel(id, "uid:7").error().problem, Problem::conflict);
}

// Returns how often an attach of two steps on the PF observes it, if each step takes so long.
std::size_t looks_of_an_attach(std::chrono::seconds step_time) {
    TemporaryFolder folder;
    FakeClock clock;
    FakeKernel kernel(igb_host());
    FakeHypervisor hypervisor(kernel);
    Bench bench(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    hypervisor.add(make_vm("vm1", vm1));
    EXPECT_TRUE(hypervisor.start(vm1));
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    kernel.on_perform = [&](KernelStep const&) { clock.advance(step_time); };
    auto wanted = ask();
    wanted.network.reset();
    auto const before = kernel.observed();
    auto const ended = bench.run(Attach{wanted});
    EXPECT_EQ(ended.state, OperationState::succeeded);
    EXPECT_EQ(ended.steps.size(), 3U);
    return kernel.observed() - before;
}

// Once to plan from, and once for what is left: two steps change it, each in another aspect.
TEST(ObservedParts, AreObservedAgainOnlyWhenTheyAreOld) {
    EXPECT_EQ(looks_of_an_attach(std::chrono::seconds(0)), 2U);
    EXPECT_EQ(looks_of_an_attach(std::chrono::seconds(3)), 3U);
}

// Spans are what its time went to: they don't overlap, and none is longer than the whole.
TEST_F(CancelTest, AnOperationShowsWhatItsTimeWentTo) {
    auto const ended = bench.run(Attach{ask()});
    ASSERT_EQ(ended.state, OperationState::succeeded);
    std::map<SpanKind, int> counted;
    std::int64_t end = 0;
    for (auto const& span : ended.spans) {
        ++counted[span.kind];
        EXPECT_GE(span.began_us, end) << span.what;
        EXPECT_GE(span.took_us, 0) << span.what;
        end = span.began_us + span.took_us;
    }
    EXPECT_EQ(counted[SpanKind::claim], 1);
    EXPECT_EQ(counted[SpanKind::plan], 1);
    EXPECT_EQ(counted[SpanKind::step], static_cast<int>(ended.steps.size()));
    EXPECT_GE(counted[SpanKind::observe], 2);
    // The first step's intention is stored with the plan, and the end comes after the spans.
    EXPECT_EQ(counted[SpanKind::commit], static_cast<int>(ended.steps.size()) - 1);
    auto const whole = std::chrono::duration_cast<std::chrono::microseconds>(
        *ended.finished_at - ended.created_at + std::chrono::milliseconds(1));
    EXPECT_LE(end, whole.count());
}

}  // namespace
}  // namespace vfmgr
