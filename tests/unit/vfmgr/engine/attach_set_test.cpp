// SPDX-License-Identifier: Apache-2.0
// Several VFs for one VM in one operation: all of them, or none.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::SizeIs;

struct AttachSet : testing::Test {
    AttachSet() {
        auto vm = make_vm("vm1", vm1);
        vm.free_pcie_ports = 8;
        hypervisor.add(std::move(vm));
        bench.emplace(kernel, hypervisor, folder.path());
        EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)}).state,
                  OperationState::succeeded);
    }
    [[nodiscard]] std::vector<std::string> ids() const {
        std::vector<std::string> all;
        for (auto const& [id, one] : bench->desired().attachments) all.push_back(id);
        return all;
    }
    [[nodiscard]] std::size_t in_vm() const { return hypervisor.view().vms.at(vm1).live.size(); }
    static std::vector<AttachmentSpec> three(std::optional<VerifyMode> verify = {}) {
        auto spec = ask();
        spec.verify = verify;
        spec.verify_timeout_seconds = 30;
        return std::vector(3, spec);
    }

    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::optional<Bench> bench;
};

TEST_F(AttachSet, IsOneOperationThatNamesThem) {
    auto const done = bench->run(Attach{three()});
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    EXPECT_EQ(done.subject, "/v1/attachments");
    auto named = done.attachments;
    std::ranges::sort(named);
    EXPECT_EQ(named, ids());
    EXPECT_EQ(done.vm_uuid, vm1);
    EXPECT_EQ(in_vm(), 3U);
    for (auto const& [id, one] : bench->desired().attachments) {
        EXPECT_EQ(one.state, AttachmentState::attached);
        EXPECT_EQ(one.operation, done.id);
    }
}

// Each step reads back what it did to the VM, and the next one is undone by that.
TEST_F(AttachSet, AsksLibvirtForTheVmNoMoreOftenThanOneVfDoes) {
    auto const asked = [this](std::size_t vfs) {
        auto const before = hypervisor.observed();
        auto const done = bench->run(Attach{std::vector(vfs, ask())});
        EXPECT_EQ(done.state, OperationState::succeeded);
        return hypervisor.observed() - before;
    };
    auto const one = asked(1);
    EXPECT_GT(one, 0U);
    EXPECT_EQ(asked(3), one);
}

TEST_F(AttachSet, ShowsThemInADryRun) {
    Intent dry;
    dry.dry_run = true;
    auto const shown = bench->submit(Attach{three()}, dry).value();
    EXPECT_FALSE(shown.attachment);
    EXPECT_THAT(shown.attachments, SizeIs(3));
    EXPECT_THAT(bench->desired().attachments, SizeIs(0));
}

TEST_F(AttachSet, EveryFailingStepLeavesNone) {
    auto const clean = text(kernel.view());
    std::size_t failures = 0;
    for (std::size_t n = 0; n < 10; ++n) {
        kernel.fail_at = Fault{kernel.performed() + n, FaultPoint::halfway};
        auto const attached = bench->run(Attach{three()});
        kernel.fail_at.reset();
        if (attached.state == OperationState::succeeded) {
            ASSERT_EQ(bench->run(Detach{ids()}).state, OperationState::succeeded);
            continue;
        }
        ++failures;
        EXPECT_EQ(text(kernel.view()), clean) << "step " << n;
        EXPECT_EQ(in_vm(), 0U);
        EXPECT_THAT(bench->desired().attachments, SizeIs(0));
        EXPECT_THAT(bench->desired().quarantine, SizeIs(0));
        EXPECT_FALSE(bench->desired().pfs.at(pf0).base);
    }
    EXPECT_GE(failures, 7U);
}

TEST_F(AttachSet, ProvesThemAtTheSameTime) {
    auto const id = bench->submit(Attach{three(VerifyMode::required)})->operation->id;
    std::promise<void> all;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (state.runs().size() < 3) return false;
        for (auto const& [attachment, run] : state.runs()) {
            Verification report;
            report.attachment = attachment;
            report.run = run.run;
            report.verdict = Verdict::pass;
            bench->engine.runs().verification_done(std::move(report));
        }
        all.set_value();
        return true;
    });
    all.get_future().get();
    auto const done = bench->ended(id);
    EXPECT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    for (auto const& step : done.steps) EXPECT_EQ(step.state, StepState::done) << step.sentence;
}

TEST_F(AttachSet, NoneStaysWhenOneIsNotProved) {
    auto const clean = text(kernel.view());
    auto const id = bench->submit(Attach{three(VerifyMode::required)})->operation->id;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (state.runs().size() < 3) return false;
        Verification report;
        for (auto const& [attachment, run] : state.runs()) {
            report.attachment = attachment;
            report.run = run.run;
            report.verdict = attachment == std::next(state.runs().begin())->first ? Verdict::fail
                                                                                  : Verdict::pass;
            bench->engine.runs().verification_done(report);
        }
        return true;
    });
    auto const done = bench->ended(id);
    EXPECT_EQ(done.state, OperationState::failed);
    EXPECT_EQ(done.problem->problem, Problem::guest_refused);
    EXPECT_THAT(bench->desired().attachments, SizeIs(0));
    EXPECT_EQ(in_vm(), 0U);
    EXPECT_EQ(text(kernel.view()), clean);
}

TEST_F(AttachSet, DetachesAllButWhatTheVmKeeps) {
    bench->run(Attach{three()});
    auto const kept = ids().at(1);
    hypervisor.on_perform = [&](HypervisorStep const& step) {
        auto const* const detach = std::get_if<DetachHostdev>(&step);
        hypervisor.detach = detach && detach->attachment == kept ? DetachBehaviour::times_out
                                                                 : DetachBehaviour::works;
    };
    auto const failed = bench->run(Detach{ids()});
    EXPECT_EQ(failed.state, OperationState::failed);
    EXPECT_THAT(failed.problem->detail, HasSubstr("1 of 3 attachments were not detached: " + kept));
    EXPECT_EQ(ids(), std::vector{kept});
    EXPECT_EQ(in_vm(), 1U);
    hypervisor.on_perform = {};
    hypervisor.detach = DetachBehaviour::works;
    EXPECT_EQ(bench->run(Detach{kept}).state, OperationState::succeeded);
}

TEST_F(AttachSet, CountsAgainstATenantsQuota) {
    Tenant tenant;
    tenant.name = "a";
    tenant.vms = {vm1};
    tenant.networks = {"train"};
    tenant.pools = {"any"};
    tenant.fields = {"trust"};
    tenant.quota.attachments = 2;
    Pool any;
    any.name = "any";
    ASSERT_TRUE(bench->submit(PutPool{any}));
    ASSERT_TRUE(bench->submit(PutTenant{tenant}));
    Intent theirs;
    theirs.tenant = "a";
    auto spec = ask();
    spec.pf.reset();
    spec.pool = "any";
    auto const refused = bench->submit(Attach{std::vector(3, spec)}, theirs);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::quota_exceeded);
    EXPECT_TRUE(bench->submit(Attach{std::vector(2, spec)}, theirs));
}

}  // namespace
}  // namespace vfmgr
