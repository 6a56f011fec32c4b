// SPDX-License-Identifier: Apache-2.0
// The disk is full from some step of an operation on: what was begun is undone, finished or
// quarantined, and reported when there is room again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/file_size_limit.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

// Full from step `from` on, until more than refused_max writes have failed without a step between
// them: the operation waits for room by then, or is over.
struct FullDisk {
    static constexpr int refused_max = 4;
    explicit FullDisk(std::size_t step) : from(step) {}

    void step_begins() {
        std::lock_guard const lock(mutex);
        if (steps++ == from) limit.emplace(0);
        refused = test::FileSizeLimit::refused();
    }
    // Returns whether this is the last call.
    bool after_a_task() {
        std::lock_guard const lock(mutex);
        if (test::FileSizeLimit::refused() - refused > refused_max) limit.reset();
        return ended;
    }
    // Returns whether the disk was full at all.
    bool end() {
        std::lock_guard const lock(mutex);
        ended = true;
        limit.reset();
        return steps > from;
    }

    std::size_t const from;
    std::mutex mutex;
    std::size_t steps = 0;
    int refused = 0;  // up to the last step
    bool ended = false;
    std::optional<test::FileSizeLimit> limit;
};

struct FullDiskTest : testing::Test {
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    TemporaryFolder folder;
    Bench bench{kernel, hypervisor, folder.path()};
    std::string fresh;

    FullDiskTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        fresh = text(kernel.view());
    }
    // Returns nullopt when the operation has no such step.
    std::optional<Operation> run_full_from(std::size_t step, Command const& command) {
        auto const disk = std::make_shared<FullDisk>(step);
        kernel.on_perform = [disk](KernelStep const&) { disk->step_begins(); };
        hypervisor.on_perform = [disk](HypervisorStep const&) { disk->step_begins(); };
        follow(disk);
        auto operation = bench.run(command);
        kernel.on_perform = {};
        hypervisor.on_perform = {};
        return disk->end() ? std::optional(std::move(operation)) : std::nullopt;
    }
    // A task that posts itself again: no change is published that a watcher could wait for.
    void follow(std::shared_ptr<FullDisk> const& disk) {
        bench.engine.control().post([this, disk](Control::State&) {
            if (!disk->after_a_task()) follow(disk);
        });
    }
    void expect_all_as_before() const {
        EXPECT_EQ(text(kernel.view()), fresh);
        EXPECT_THAT(hypervisor.view().vms.at(vm1).live, IsEmpty());
        EXPECT_THAT(hypervisor.view().vms.at(vm1).config, IsEmpty());
        EXPECT_THAT(bench.desired().attachments, IsEmpty());
        EXPECT_THAT(bench.desired().quarantine, IsEmpty());
    }
    [[nodiscard]] std::string attachment() const {
        return bench.desired().attachments.begin()->first;
    }
};

TEST_F(FullDiskTest, AnAttachIsUndoneOrAttached) {
    std::size_t undone = 0;
    std::size_t attached = 0;
    while (auto const operation = run_full_from(undone + attached, Attach{ask()})) {
        SCOPED_TRACE(undone + attached);
        if (operation->state == OperationState::failed) {
            EXPECT_THAT(operation->problem->detail, HasSubstr("cannot be written"));
            expect_all_as_before();
            ++undone;
            continue;
        }
        // The last step was done: only its end had to be written.
        ASSERT_EQ(operation->state, OperationState::succeeded);
        EXPECT_EQ(bench.desired().attachments.at(attachment()).state, AttachmentState::attached);
        ASSERT_EQ(bench.run(Detach{attachment()}).state, OperationState::succeeded);
        expect_all_as_before();
        ++attached;
    }
    EXPECT_GT(undone, 5U);
    EXPECT_EQ(attached, 1U);
}

TEST_F(FullDiskTest, AReleaseIsQuarantinedOrDone) {
    std::size_t quarantined = 0;
    std::size_t released = 0;
    while (true) {
        SCOPED_TRACE(quarantined + released);
        ASSERT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
        auto const id = attachment();
        auto const operation = run_full_from(quarantined + released, Detach{id});
        if (!operation) break;
        EXPECT_THAT(hypervisor.view().vms.at(vm1).live, IsEmpty());
        EXPECT_THAT(bench.desired().attachments, IsEmpty());
        if (operation->state == OperationState::failed) {
            EXPECT_THAT(operation->problem->detail, HasSubstr("cannot be written"));
            ASSERT_EQ(bench.desired().quarantine.size(), 1U);
            auto const vf = bench.desired().quarantine.begin()->first;
            ASSERT_EQ(bench.run(LiftQuarantine{vf}).state, OperationState::succeeded);
            ++quarantined;
        } else {
            EXPECT_TRUE(operation->certificate);
            ++released;
        }
        expect_all_as_before();
    }
    EXPECT_GT(quarantined, 3U);
    EXPECT_EQ(released, 1U);
}

}  // namespace
}  // namespace vfmgr
