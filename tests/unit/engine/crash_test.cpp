// SPDX-License-Identifier: Apache-2.0
// The process dies at every point between two durable writes or host changes. Each point is a copy
// of the disk and of the host, taken while an operation runs; recovery starts from each copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct Moment {
    std::string what;
    std::unique_ptr<TemporaryFolder> disk;
    KernelView kernel;
    HypervisorView hypervisor;
};

// Takes a Moment before and after every call of either seam.
class Watched final : public Kernel, public Hypervisor {
  public:
    Watched(FakeKernel& kernel, FakeHypervisor& hypervisor, std::filesystem::path disk)
        : kernel_(kernel), hypervisor_(hypervisor), disk_(std::move(disk)) {}

    Result<KernelView> observe(KernelScope const& scope) override {
        take("observe the kernel");
        return kernel_.observe(scope);
    }
    Result<HypervisorView> observe(HypervisorScope const& scope) override {
        return hypervisor_.observe(scope);
    }
    Result<Observed> perform(KernelStep const& step, Deadline deadline) override {
        return around(step, [&] { return kernel_.perform(step, deadline); });
    }
    Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override {
        return around(step, [&] { return hypervisor_.perform(step, deadline); });
    }
    Result<void> settle(std::string const& vm, Deadline deadline) override {
        return hypervisor_.settle(vm, deadline);
    }
    void take(std::string what) {
        if (!taking) return;
        Moment moment{std::move(what), std::make_unique<TemporaryFolder>(), kernel_.view(),
                      hypervisor_.view()};
        std::filesystem::copy(disk_, moment.disk->path(), std::filesystem::copy_options::recursive);
        moments.push_back(std::move(moment));
    }

    bool taking = false;
    std::vector<Moment> moments;

  private:
    template <class AnyStep, class F>
    Result<Observed> around(AnyStep const& step, F call) {
        auto const text = std::visit([](auto const& one) { return sentence(Step{one}); }, step);
        take("before: " + text);
        auto result = call();
        take("after: " + text);
        return result;
    }
    FakeKernel& kernel_;
    FakeHypervisor& hypervisor_;
    std::filesystem::path disk_;
};

struct CrashTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Watched watched{kernel, hypervisor, folder.path()};

    CrashTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
    }

    // Recovery from `moment`: on fakes that stand where the host stood then.
    static void recover(Moment& moment, auto check) {
        FakeKernel host{moment.kernel};
        FakeHypervisor libvirt{host};
        libvirt.change([&](HypervisorView& view) { view = moment.hypervisor; });
        Bench bench(host, libvirt, moment.disk->path());
        ASSERT_TRUE(bench.recovered) << moment.what;
        check(bench, host.view(), libvirt.view());
        auto const left = bench.engine.control().wait(
            [](Control::State& state) { return state.store.unfinished(); });
        EXPECT_TRUE(left->empty()) << moment.what;
    }
};

void expect_not_lent(Bench& bench, KernelView const& host, HypervisorView const& libvirt,
                     KernelView const& clean, std::string const& what) {
    EXPECT_TRUE(bench.desired().attachments.empty()) << what;
    EXPECT_TRUE(bench.desired().quarantine.empty()) << what;
    EXPECT_EQ(text(host), text(clean)) << what;
    EXPECT_TRUE(libvirt.vms.at(vm1).live.empty()) << what;
    EXPECT_TRUE(libvirt.vms.at(vm1).config.empty()) << what;
}

TEST_F(CrashTest, AnAttachEndsLentOrNotAtEveryPoint) {
    Bench bench(watched, watched, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    watched.taking = true;
    ASSERT_EQ(bench.run(Lend{ask()}).state, OperationState::succeeded);
    watched.take("after the operation");
    watched.taking = false;
    auto const lent = kernel.view();
    std::size_t attached = 0;
    for (auto& moment : watched.moments)
        recover(moment, [&](Bench& after, KernelView const& host, HypervisorView const& libvirt) {
            if (after.desired().attachments.empty())
                return expect_not_lent(after, host, libvirt, clean, moment.what);
            ++attached;
            EXPECT_EQ(text(host), text(lent)) << moment.what;
            EXPECT_EQ(libvirt.vms.at(vm1).live.size(), 1U) << moment.what;
            EXPECT_EQ(libvirt.vms.at(vm1).config.size(), 1U) << moment.what;
        });
    EXPECT_GT(watched.moments.size(), 20U);
    EXPECT_GE(attached, 1U);
    RecordProperty("crash_points", static_cast<int>(watched.moments.size()));
}

TEST_F(CrashTest, ADetachEndsCleanAtEveryPoint) {
    Bench bench(watched, watched, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    bench.run(Lend{ask()});
    watched.taking = true;
    ASSERT_EQ(bench.run(Release{bench.desired().attachments.begin()->first}).state,
              OperationState::succeeded);
    watched.take("after the operation");
    watched.taking = false;
    for (auto& moment : watched.moments)
        recover(moment, [&](Bench& after, KernelView const& host, HypervisorView const& libvirt) {
            // Nothing about the detach is durable before it begins: then the lease goes on.
            expect_not_lent(after, host, libvirt, clean, moment.what);
        });
    EXPECT_GT(watched.moments.size(), 12U);
}

TEST_F(CrashTest, AChangeOfCountEndsOldOrNewAtEveryPoint) {
    Bench bench(watched, watched, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(3)});
    auto const before = kernel.view();
    watched.taking = true;
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    watched.take("after the operation");
    watched.taking = false;
    auto const after_all = kernel.view();
    for (auto& moment : watched.moments)
        recover(moment, [&](Bench& after, KernelView const& host, HypervisorView const&) {
            bool const changed =
                after.desired().pfs.contains(pf0) && after.desired().pfs.at(pf0).spec.num_vfs == 7;
            EXPECT_EQ(text(host), text(changed ? after_all : before)) << moment.what;
        });
}

// Every step of an attach fails once, in each way: everything is as before.
TEST_F(CrashTest, EveryFailingStepOfAnAttachIsUndone) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    std::size_t failures = 0;
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after})
        for (std::size_t n = 0; n < 9; ++n) {
            kernel.fail_at = Fault{kernel.performed() + n, point};
            auto const lent = bench.run(Lend{ask()});
            kernel.fail_at.reset();
            if (lent.state == OperationState::succeeded) {
                bench.run(Release{bench.desired().attachments.begin()->first});
                continue;
            }
            ++failures;
            EXPECT_EQ(text(kernel.view()), text(clean)) << "step " << n;
            EXPECT_TRUE(bench.desired().attachments.empty());
            EXPECT_TRUE(bench.desired().quarantine.empty());
        }
    EXPECT_GE(failures, 24U);
}

TEST_F(CrashTest, AHypervisorThatFailsIsUndone) {
    Bench bench(kernel, hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto const clean = kernel.view();
    for (auto const point : {FaultPoint::before, FaultPoint::halfway, FaultPoint::after}) {
        hypervisor.fail_at = Fault{hypervisor.performed(), point};
        EXPECT_EQ(bench.run(Lend{ask()}).state, OperationState::failed);
        hypervisor.fail_at.reset();
        EXPECT_EQ(text(kernel.view()), text(clean));
        EXPECT_TRUE(hypervisor.view().vms.at(vm1).config.empty());
        EXPECT_TRUE(hypervisor.view().vms.at(vm1).live.empty());
    }
}

}  // namespace
}  // namespace vfmgr
