// SPDX-License-Identifier: Apache-2.0
// Recovery while the host is served: each PF by itself, under claims, and what stops a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using namespace example;
using testing::HasSubstr;

PciAddress const other_pf{0, 2, 0, 0};

struct RecoverTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{host_with_two()};
    FakeHypervisor hypervisor{kernel};
    std::vector<std::string> attachments;

    static KernelView host_with_two() {
        auto view = igb_host();
        view.pfs[other_pf] = make_igb_pf("0000:02:00.0", "enp2s0");
        return view;
    }
    // Two VMs, each with a VF of its own PF.
    void SetUp() override {
        for (auto const* const uuid : {vm1, vm2}) {
            hypervisor.add(make_vm(uuid == vm1 ? "vm1" : "vm2", uuid));
            ASSERT_TRUE(hypervisor.start(uuid));
        }
        Bench bench(kernel, hypervisor, folder.path());
        for (auto const& pf : {pf0, other_pf}) {
            auto const spec = spec_with_vfs(3);
            auto request = ask(pf == pf0 ? "vm1" : "vm2");
            request.pf = pf;
            ASSERT_EQ(bench.run(ReplacePfSpec{pf, spec}).state, OperationState::succeeded);
            auto const attached = bench.run(Attach{request});
            ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
            attachments.push_back(attached.subject.substr(attached.subject.rfind('/') + 1));
        }
    }
    // As an earlier daemon left it: each detach had begun.
    void cut_short() {
        auto control = open_control(folder.path());
        Batch batch;
        for (auto const& id : attachments) {
            Operation operation;
            operation.id = "cut-" + id;
            operation.kind = OperationKind::detach;
            operation.state = OperationState::running;
            operation.subject = "/v1/attachments/" + id;
            batch.save_operations.push_back(operation);
        }
        ASSERT_TRUE(control->wait([&](Control::State& state) { return state.commit(batch); }));
    }
};

Result<Answer> submit(Engine& engine, Command command) {
    std::promise<Result<Answer>> answer;
    engine.submit(std::move(command), {},
                  [&](Result<Answer> given) { answer.set_value(std::move(given)); });
    return answer.get_future().get();
}

// false: it has not ended
bool ended_well(Engine& engine, Result<Answer> const& accepted) {
    if (!accepted) throw std::runtime_error(accepted.error().detail);
    return engine.control().wait([&](Control::State& state) {
        auto const now = state.store.operation(accepted->operation->id).value();
        if (now->problem) throw std::runtime_error(now->problem->detail);
        return now->state == OperationState::succeeded;
    });
}

struct Ended {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> subjects;

    Engine::Recovered hook() {
        return [this](Operation const& operation) {
            std::lock_guard const lock(mutex);
            subjects.push_back(operation.subject);
            changed.notify_all();
        };
    }
    void await(std::size_t count) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return subjects.size() >= count; });
    }
};

TEST_F(RecoverTest, IsOverForOnePfWhileAGuestKeepsAnotherWaiting) {
    cut_short();
    std::latch guest_lets_go{1};
    hypervisor.on_perform = [&](HypervisorStep const& step) {
        auto const* const detach = std::get_if<DetachHostdev>(&step);
        if (detach && detach->vm_uuid == vm1) guest_lets_go.wait();
    };
    Engine engine(kernel, hypervisor, open_control(folder.path()), system_clock());
    Ended ended;
    ASSERT_TRUE(engine.recover(ended.hook()));
    engine.start_observing();
    ended.await(1);
    EXPECT_EQ(ended.subjects, std::vector{"/v1/attachments/" + attachments[1]});
    auto const now = engine.snapshot();
    EXPECT_TRUE(now.desired->attachments.contains(attachments[0]));
    EXPECT_FALSE(now.desired->attachments.contains(attachments[1]));
    EXPECT_EQ(now.host->kernel.pfs.at(pf0).vfs.size(), 3U) << "it is served";

    // A command for the PF that is free again runs; a change of the other PF is refused.
    auto const respec = [&](PciAddress const& pf) {
        auto spec = engine.snapshot().desired->pfs.at(pf).spec;
        spec.mode = PfMode::enforce;
        return submit(engine, ReplacePfSpec{pf, spec});
    };
    auto const refused = respec(pf0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr("pf 0000:01:00.0 is in recovery"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("vfctl op wait cut-" + attachments[0]));
    auto elsewhere = ask("vm1");
    elsewhere.pf = other_pf;
    for (Command const& command :
         {Command(Detach{attachments[0]}), Command(Attach{ask("vm2")}), Command(Attach{elsewhere}),
          Command(ForgetPf{pf0}), Command(LiftQuarantine{{pf0, 0}})}) {
        auto const also = submit(engine, command);
        ASSERT_FALSE(also);
        EXPECT_THAT(also.error().detail, HasSubstr("is in recovery")) << command.index();
    }
    auto const accepted = respec(other_pf);
    while (!ended_well(engine, accepted)) std::this_thread::yield();
    guest_lets_go.count_down();
    ended.await(2);
    EXPECT_TRUE(engine.snapshot().desired->attachments.empty());
    auto again = respec(pf0);
    for (; !again; again = respec(pf0))
        ASSERT_THAT(again.error().detail, HasSubstr("is in recovery")) << "its claim still is";
    while (!ended_well(engine, again)) std::this_thread::yield();
}

TEST_F(RecoverTest, AStopDoesNotWaitForAGuestAndEndsBetweenStepsOfTheKernel) {
    std::latch guest_lets_go{1};
    std::latch guest_is_asked{1};
    std::latch in_step{1};
    std::latch step_ends{1};
    std::atomic<int> steps = 0;
    hypervisor.on_perform = [&](HypervisorStep const&) {
        guest_is_asked.count_down();
        guest_lets_go.wait();
    };
    Engine engine(kernel, hypervisor, open_control(folder.path()), system_clock());
    ASSERT_TRUE(engine.recover());
    EXPECT_TRUE(submit(engine, Detach{attachments[0]}));
    guest_is_asked.wait();
    kernel.on_perform = [&](KernelStep const& step) {
        if (subject_of(step) != KernelSubject(other_pf)) return;
        if (steps++ != 0) return;
        in_step.count_down();
        step_ends.wait();
    };
    AttachmentSpec more = ask("vm2");
    more.pf = other_pf;
    more.network.reset();
    more.vf = 2;
    EXPECT_TRUE(submit(engine, Attach{more}));
    in_step.wait();
    engine.stop_waiting();
    auto stopped = std::async(std::launch::async,
                              [&] { return engine.stop(std::chrono::steady_clock::now() + 50ms); });
    EXPECT_EQ(stopped.wait_for(200ms), std::future_status::timeout) << "a step is under way";
    step_ends.count_down();
    EXPECT_FALSE(stopped.get());
    EXPECT_EQ(steps, 1) << "no other began";
    EXPECT_EQ(hypervisor.view().vms.at(vm1).live.size(), 1U);
    guest_lets_go.count_down();
}

TEST_F(RecoverTest, AStopIsCleanWhenAllHasEnded) {
    Engine engine(kernel, hypervisor, open_control(folder.path()), system_clock());
    ASSERT_TRUE(engine.recover());
    engine.stop_waiting();
    EXPECT_TRUE(engine.stop(std::chrono::steady_clock::now() + 10s));
}

}  // namespace
}  // namespace vfmgr
