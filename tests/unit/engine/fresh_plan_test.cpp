// SPDX-License-Identifier: Apache-2.0
// An operation plans from what it has observed itself, whatever a slower look publishes meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

class Latch {
  public:
    void open() {
        {
            std::lock_guard const lock(mutex_);
            open_ = true;
        }
        opened_.notify_all();
    }
    void await() {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

// Where a full look has read the host and has not answered yet.
struct SlowLook {
    std::atomic<bool> armed = false;
    Latch has_read;
    Latch may_answer;
};

// Reads at once; every reading is a second newer than the one before, where the clock is that fine.
class SlowKernel final : public Kernel {
  public:
    SlowKernel(FakeKernel& host, SlowLook& slow) : host_(host), slow_(slow) {}
    Result<KernelView> observe(KernelScope const& scope) override {
        VFMGR_TRY(auto view, host_.observe(scope));
        for (auto& [pci, pf] : view.pfs) pf.observed_at = Time(second * ++readings_);
        if (!scope && slow_.armed.exchange(false)) {
            slow_.has_read.open();
            slow_.may_answer.await();
        }
        return view;
    }
    Result<Observed> perform(KernelStep const& step, Deadline deadline) override {
        return host_.perform(step, deadline);
    }
    Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override {
        return host_.read_firmware(function);
    }

    std::chrono::seconds second{1};

  private:
    FakeKernel& host_;
    SlowLook& slow_;
    std::atomic<int> readings_ = 0;
};

// While an operation asks libvirt, the full look answers and publishes what it had read.
class SlowHypervisor final : public Hypervisor {
  public:
    SlowHypervisor(FakeHypervisor& host, SlowLook& slow) : host_(host), slow_(slow) {}
    Result<HypervisorView> observe(HypervisorScope const& scope) override {
        if (!scope && armed.load()) {
            if (asked_.fetch_add(1) == 0) {
                slow_.may_answer.open();
                has_published_.await();
            } else {
                has_published_.open();  // a look asks libvirt when it has published the kernel's
            }
        }
        return host_.observe(scope);
    }
    Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override {
        return host_.perform(step, deadline);
    }
    Result<void> settle(std::string const& vm, Deadline deadline) override {
        return host_.settle(vm, deadline);
    }
    std::atomic<bool> armed = false;

  private:
    FakeHypervisor& host_;
    SlowLook& slow_;
    std::atomic<int> asked_ = 0;
    Latch has_published_;
};

// So that a test that fails ends.
struct OpensAtTheEnd {
    Latch& latch;
    ~OpensAtTheEnd() { latch.open(); }
};

struct FreshPlan : testing::Test {
    TemporaryFolder folder;
    FakeKernel host{igb_host()};
    FakeHypervisor vms{host};
    SlowLook slow;
    SlowKernel kernel{host, slow};
    SlowHypervisor hypervisor{vms, slow};

    FreshPlan() {
        vms.add(make_vm("vm1", vm1));
        vms.add(make_vm("vm2", vm2));
        EXPECT_TRUE(vms.start(vm1));
        EXPECT_TRUE(vms.start(vm2));
    }
    void lend_take_back_and_lend_again();
};

void FreshPlan::lend_take_back_and_lend_again() {
    Bench bench(kernel, hypervisor, folder.path());
    OpensAtTheEnd const end{slow.may_answer};
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto spec = ask("vm2");
    spec.vf = 1;
    bench.run(Lend{spec});  // for which the leg stays
    spec = ask("vm1");
    spec.vf = 0;
    auto const lease_of = [&](Operation const& done) {
        EXPECT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
        return bench.desired().attachments.at(done.subject.substr(done.subject.rfind('/') + 1));
    };
    auto const first = lease_of(bench.run(Lend{spec}));
    bench.engine.start_observing();
    // The VM has let go, and its MAC and VLAN are on the VF still: a full look reads that now.
    host.on_perform = [&](KernelStep const& step) {
        if (!std::holds_alternative<ResetVf>(step)) return;
        slow.armed = true;
        bench.engine.look_at_once();
        slow.has_read.await();
    };
    EXPECT_EQ(bench.run(Release{first.id}).state, OperationState::succeeded);
    host.on_perform = {};

    hypervisor.armed = true;
    auto const second = lease_of(bench.run(Lend{spec}));
    EXPECT_NE(second.baseline.mac, first.settings.mac) << "it would be put back for the next one";
    EXPECT_EQ(second.baseline.mac, MacAddress{});
    EXPECT_EQ(second.baseline.vlan, Vlan{});
    auto const back = bench.run(Release{second.id});
    ASSERT_TRUE(back.certificate);
    EXPECT_EQ(back.certificate->settings.mac, MacAddress{});
}

TEST_F(FreshPlan, TheLastTenantsMacIsNotTheNextOnesBaseline) {
    lend_take_back_and_lend_again();
}

TEST_F(FreshPlan, NorWhereTheClockTellsReadingsNotApart) {
    kernel.second = std::chrono::seconds(0);
    lend_take_back_and_lend_again();
}

}  // namespace
}  // namespace vfmgr
