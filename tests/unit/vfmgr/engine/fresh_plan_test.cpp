// SPDX-License-Identifier: Apache-2.0
// An operation plans from its own observation, whatever a slower one publishes meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

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

// Blocks a full observation after it has read the host and before it returns.
struct SlowObservation {
    std::atomic<bool> armed = false;
    Latch has_read;
    Latch may_answer;
};

// Reads at once; each reading is a second newer than the one before, if the clock is that fine.
class SlowKernel final : public Kernel {
  public:
    SlowKernel(FakeKernel& host, SlowObservation& slow) : host_(host), slow_(slow) {}
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
    Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const& pf) override {
        return host_.read_traffic(pf);
    }

    std::chrono::seconds second{1};

  private:
    FakeKernel& host_;
    SlowObservation& slow_;
    std::atomic<int> readings_ = 0;
};

// While an operation queries libvirt, the full observation returns and publishes what it read.
class SlowHypervisor final : public Hypervisor {
  public:
    SlowHypervisor(FakeHypervisor& host, SlowObservation& slow) : host_(host), slow_(slow) {}
    Result<HypervisorView> observe(HypervisorScope const& scope) override {
        if (!scope && armed.load()) {
            if (asked_.fetch_add(1) == 0) {
                slow_.may_answer.open();
                has_published_.await();
            } else {
                has_published_.open();  // by now it has published the kernel's
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
    SlowObservation& slow_;
    std::atomic<int> asked_ = 0;
    Latch has_published_;
};

// Lets a failing test end.
struct OpensAtTheEnd {
    Latch& latch;
    ~OpensAtTheEnd() { latch.open(); }
};

struct FreshPlan : testing::Test {
    TemporaryFolder folder;
    FakeKernel host{igb_host()};
    FakeHypervisor vms{host};
    SlowObservation slow;
    SlowKernel kernel{host, slow};
    SlowHypervisor hypervisor{vms, slow};

    FreshPlan() {
        vms.add(make_vm("vm1", vm1));
        vms.add(make_vm("vm2", vm2));
        EXPECT_TRUE(vms.start(vm1));
        EXPECT_TRUE(vms.start(vm2));
    }
    void attach_detach_and_attach_again();
};

void FreshPlan::attach_detach_and_attach_again() {
    Bench bench(kernel, hypervisor, folder.path());
    OpensAtTheEnd const end{slow.may_answer};
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    auto spec = ask("vm2");
    spec.vf = 1;
    bench.run(Attach{spec});  // the interface stays up for it
    spec = ask("vm1");
    spec.vf = 0;
    auto const attachment_of = [&](Operation const& done) {
        EXPECT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
        return bench.desired().attachments.at(done.subject.substr(done.subject.rfind('/') + 1));
    };
    auto const first = attachment_of(bench.run(Attach{spec}));
    bench.engine.start_observing();
    // The VM has let go, its MAC and VLAN are still on the VF: a full observation reads that now.
    host.on_perform = [&](KernelStep const& step) {
        if (!std::holds_alternative<ResetVf>(step)) return;
        slow.armed = true;
        bench.engine.observe_at_once();
        slow.has_read.await();
    };
    EXPECT_EQ(bench.run(Detach{first.id}).state, OperationState::succeeded);
    host.on_perform = {};

    hypervisor.armed = true;
    auto const second = attachment_of(bench.run(Attach{spec}));
    EXPECT_NE(second.baseline.mac, first.settings.mac) << "it would be restored for the next one";
    EXPECT_EQ(second.baseline.mac, MacAddress{});
    EXPECT_EQ(second.baseline.vlan, Vlan{});
    auto const back = bench.run(Detach{second.id});
    ASSERT_TRUE(back.certificate);
    EXPECT_EQ(back.certificate->settings.mac, MacAddress{});
}

TEST_F(FreshPlan, TheLastTenantsMacIsNotTheNextOnesBaseline) {
    attach_detach_and_attach_again();
}

TEST_F(FreshPlan, NorWhereTheClockTellsReadingsNotApart) {
    kernel.second = std::chrono::seconds(0);
    attach_detach_and_attach_again();
}

}  // namespace
}  // namespace vfmgr
