// SPDX-License-Identifier: Apache-2.0
// What a VF's earlier runs are used for, and that they outlive its attachments.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

struct VfHistory : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    void attach(std::uint16_t vf) {
        auto spec = ask();
        spec.vf = vf;
        ASSERT_EQ(bench->run(Attach{spec}).state, OperationState::succeeded);
    }
    [[nodiscard]] std::string attachment() const {
        return bench->desired().attachments.begin()->first;
    }
    // One run whose rdma_write had that bandwidth, as the attachment has it afterwards.
    Verification verify(double mbps) {
        bench->guest_reports(Verdict::pass, {{"bandwidth_mbps", mbps}});
        EXPECT_EQ(bench->run(Verify{attachment(), 5}).state, OperationState::succeeded);
        return *bench->desired().attachments.at(attachment()).verification;
    }
    std::vector<Verification> of_vf(std::uint16_t index) {
        return bench->engine.control()
            .wait([&](Control::State& state) {
                return state.store.verifications(VfId{pf0, index}, {});
            })
            .value()
            .items;
    }
};

TEST_F(VfHistory, WarnsOfAVfThatGotSlowerUnderAnotherAttachment) {
    attach(0);
    for (int i = 0; i < 5; ++i) EXPECT_THAT(verify(100).warnings, IsEmpty());
    auto const first = attachment();
    bench->run(Detach{first});
    attach(0);
    auto const slow = verify(20);
    EXPECT_EQ(slow.verdict, Verdict::pass);
    ASSERT_EQ(slow.warnings.size(), 1U);
    EXPECT_THAT(slow.warnings[0].detail, HasSubstr("rdma_write: 20.0 Mbit/s is 0.20 times"));
    auto const kept = of_vf(0);
    ASSERT_EQ(kept.size(), 6U);
    EXPECT_EQ(kept.front(), slow) << "with its warning";
    EXPECT_EQ(kept.back().attachment, first) << "which is gone";
}

TEST_F(VfHistory, IsNotThatOfAnotherVf) {
    attach(0);
    for (int i = 0; i < 5; ++i) verify(100);
    bench->run(Detach{attachment()});
    attach(1);
    EXPECT_THAT(verify(20).warnings, IsEmpty());
    EXPECT_EQ(of_vf(0).size(), 5U);
    EXPECT_EQ(of_vf(1).size(), 1U);
}

}  // namespace
}  // namespace vfmgr
