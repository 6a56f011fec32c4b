// SPDX-License-Identifier: Apache-2.0
// An unexpected exception ends only what it happened in, and is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;

// While it lives no thread can be created: the address space has no room for such a stack.
class NoThreads {
  public:
    NoThreads() {
        EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
        pthread_attr_t huge;
        EXPECT_EQ(::pthread_attr_init(&huge), 0);
        EXPECT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
        EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
        ::pthread_attr_destroy(&huge);
    }
    ~NoThreads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }
    NoThreads(NoThreads const&) = delete;
    NoThreads& operator=(NoThreads const&) = delete;

  private:
    pthread_attr_t before_{};
};

struct ExceptionTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path()};
    std::vector<std::string> bugs_;  // control thread

    ExceptionTest() {
        bench.engine.control().on_bug([this](std::string const& what) { bugs_.push_back(what); });
    }
    ~ExceptionTest() override {
        bench.engine.control().on_bug([](std::string const&) {});
    }
    std::vector<std::string> bugs() {
        return bench.engine.control().wait([this](Control::State&) { return bugs_; });
    }
};

TEST_F(ExceptionTest, EndsItsOperation) {
    kernel.on_perform = [](KernelStep const&) { throw std::runtime_error("broken"); };
    auto const failed = bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    kernel.on_perform = {};
    ASSERT_TRUE(failed.problem);
    EXPECT_EQ(failed.problem->problem, Problem::internal);
    EXPECT_THAT(failed.problem->detail, HasSubstr("broken"));
    EXPECT_THAT(bugs(), testing::Contains(HasSubstr("broken")));
    EXPECT_EQ(bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)}).state, OperationState::succeeded)
        << "its claims are released";
}

// Nothing stays half-done: the VF is restored, and may be attached again.
TEST_F(ExceptionTest, UndoesWhatItsOperationHadDone) {
    hypervisor.add(make_vm("vm1", vm1));
    ASSERT_TRUE(hypervisor.start(vm1));
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    auto const before = text(kernel.view());
    bool configured = false;
    bool thrown = false;
    hypervisor.on_perform = [&](HypervisorStep const&) {
        if (std::exchange(thrown, true)) return;
        configured = text(kernel.view()) != before;
        throw std::runtime_error("broken");
    };
    auto const failed = bench.run(Attach{ask()});
    hypervisor.on_perform = {};
    ASSERT_TRUE(failed.problem);
    ASSERT_TRUE(configured) << failed.problem->detail;
    EXPECT_EQ(failed.problem->problem, Problem::internal);
    EXPECT_THAT(failed.problem->detail, HasSubstr("broken; its changes were undone"));
    EXPECT_EQ(text(kernel.view()), before);
    EXPECT_THAT(bench.desired().attachments, testing::IsEmpty());
    EXPECT_THAT(bench.desired().quarantine, testing::IsEmpty());
    EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
    EXPECT_THAT(bugs(), ElementsAre(HasSubstr("broken")));
}

TEST_F(ExceptionTest, OfAnyTypeEndsItsOperation) {
    kernel.on_perform = [](KernelStep const&) { throw 1; };
    EXPECT_EQ(bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)}).problem->problem, Problem::internal);
    kernel.on_perform = {};
}

TEST_F(ExceptionTest, InATaskComesOutWhereItIsWaitedFor) {
    auto& control = bench.engine.control();
    EXPECT_THROW(control.wait([](Control::State&) -> bool { throw std::runtime_error("broken"); }),
                 std::runtime_error);
    EXPECT_THAT(bugs(), ElementsAre()) << "who waits is told";
}

TEST_F(ExceptionTest, OnTheControlThreadIsTold) {
    auto& control = bench.engine.control();
    control.post([](Control::State&) { throw std::runtime_error("task"); });
    control.post([](Control::State&) {}, [] { throw std::runtime_error("published"); });
    control.watch(Deadline::max(),
                  [](Control::State&, Watch) -> bool { throw std::runtime_error("watcher"); });
    auto const asked = std::make_shared<std::promise<void>>();
    control.watch(Deadline::max(),
                  [asked](Control::State&, Watch) { return (asked->set_value(), true); });
    asked->get_future().get();
    EXPECT_THAT(bugs(), testing::UnorderedElementsAre("task", "published", "watcher"))
        << "the watcher is asked once";
}

// Other programs' files are read when VFs are not in the desired state.
TEST_F(ExceptionTest, InALookIsToldAndTheNextLookComes) {
    TemporaryFolder const other;
    Bench looking(
        kernel, hypervisor, other.path(), AskResponder{}, system_clock(), TrustedNetdevs{},
        [](std::vector<PfInfo> const&) -> OwnersOfPfs { throw std::runtime_error("broken"); });
    looking.engine.control().on_bug([this](std::string const& what) { bugs_.push_back(what); });
    looking.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    kernel.change([](KernelView& host) { host.pfs.at(pf0).vfs.clear(); });
    looking.engine.start_observing();
    have_looked(looking.engine, kernel);
    auto const told = looking.engine.control().wait([this](Control::State&) { return bugs_; });
    ASSERT_FALSE(told.empty());
    EXPECT_THAT(told.front(), HasSubstr("an observation of the host: broken"));
}

TEST_F(ExceptionTest, WithoutThreadsAnOperationFailsAndSaysSo) {
    Intent intent;
    intent.idempotency_key = "uid:0 k1";
    auto const failed = [&] {
        NoThreads const none;
        return bench.submit(ReplacePfSpec{pf0, spec_with_vfs(2)}, intent).value().operation;
    }();
    ASSERT_TRUE(failed && failed->problem);
    EXPECT_EQ(failed->problem->problem, Problem::unavailable);
    EXPECT_THAT(failed->problem->detail, HasSubstr("can't start another thread"));
    auto const again = bench.submit(ReplacePfSpec{pf0, spec_with_vfs(2)}, intent).value();
    EXPECT_EQ(again.operation->problem, failed->problem);
    EXPECT_EQ(bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)}).state, OperationState::succeeded);
}

}  // namespace
}  // namespace vfmgr
