// SPDX-License-Identifier: Apache-2.0
// The worker's end of the socket: what it does when the daemon closes its own end.
#include "vfmgr/kernel/worker.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <latch>

#include "tests/fakes/fake_kernel.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

PciAddress const pf_address{0, 1, 0, 0};

struct WorkerServiceTest : testing::Test {
    FakeKernel kernel{one_pf()};
    FileDescriptor daemon;
    std::unique_ptr<WorkerService> service;
    std::future<void> left;  // as worker.cpp's main() does before it ends the process

    static KernelView one_pf() {
        KernelView view;
        view.pfs[pf_address] = make_igb_pf("0000:01:00.0", "enp1s0");
        return view;
    }
    void SetUp() override {
        std::array<int, 2> pair{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
        daemon = FileDescriptor(pair[0]);
        service = std::make_unique<WorkerService>(FileDescriptor(pair[1]), kernel, pf_address);
        left = std::async(std::launch::async, [this] {
            service->run();
            service->finish_steps();
        });
    }
    void ask(std::optional<KernelStep> step, std::chrono::milliseconds time) {
        WorkerRequest request;
        request.step = std::move(step);
        request.milliseconds = static_cast<std::uint64_t>(time.count());
        auto const line = to_line(request);
        ASSERT_EQ(::send(daemon.get(), line.data(), line.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(line.size()));
    }
};

TEST_F(WorkerServiceTest, FinishesItsStepWhenTheDaemonIsGone) {
    std::latch in_step{1};
    std::latch step_ends{1};
    kernel.on_perform = [&](KernelStep const&) {
        in_step.count_down();
        step_ends.wait();
    };
    ask(SetNumVfs{pf_address, 3}, 60s);
    in_step.wait();
    daemon.reset();
    EXPECT_EQ(left.wait_for(200ms), std::future_status::timeout) << "it is left half done";
    step_ends.count_down();
    EXPECT_EQ(left.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(kernel.view().pfs.at(pf_address).vfs.size(), 3U);
}

TEST_F(WorkerServiceTest, DoesNotWaitForEverForAStepThatHangs) {
    std::latch in_step{1};
    std::latch step_ends{1};
    kernel.on_perform = [&](KernelStep const&) {
        in_step.count_down();
        step_ends.wait();
    };
    ask(SetNumVfs{pf_address, 3}, 0s);
    in_step.wait();
    daemon.reset();
    EXPECT_EQ(left.wait_for(20s), std::future_status::ready);
    step_ends.count_down();
    service.reset();  // waits for the step's thread
}

TEST_F(WorkerServiceTest, LeavesAtOnceWhenItIsAtNoStep) {
    ask({}, 60s);
    char answer = 0;
    ASSERT_EQ(::recv(daemon.get(), &answer, 1, 0), 1);
    daemon.reset();
    EXPECT_EQ(left.wait_for(2s), std::future_status::ready);
}

}  // namespace
}  // namespace vfmgr
