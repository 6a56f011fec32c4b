// SPDX-License-Identifier: Apache-2.0
// VFs that a VM declares in its metadata: attached at its start, gone with its stop.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/plan/released.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct DeclarationsTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::optional<Bench> bench;

    void SetUp() override {
        auto vm = make_vm("vm1", vm1);
        vm.free_pcie_ports = 8;
        vm.declared = {{"train", 2, Profile::quick}};
        hypervisor.add(std::move(vm));
        hypervisor.stop(vm1);
        bench.emplace(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        open_pool(true);
        bench->engine.start_observing();
    }
    void open_pool(bool opened) {
        Pool pool;
        pool.name = "train";
        pool.defaults.network = "train";
        pool.from_metadata = opened;
        ASSERT_TRUE(bench->submit(PutPool{pool}));
    }
    [[nodiscard]] std::vector<Attachment> attached() const {
        std::vector<Attachment> all;
        for (auto const& [id, one] : bench->desired().attachments)
            if (one.state == AttachmentState::attached) all.push_back(one);
        return all;
    }
    void start() {
        ASSERT_TRUE(hypervisor.start(vm1));
        observe_anew(*bench);
    }
    void await(std::size_t count) {
        observe_until(*bench, [&] { return attached().size() == count; });
    }
    // The sentences of what was refused so far.
    [[nodiscard]] std::vector<std::string> refusals() {
        std::vector<std::string> all;
        auto const page = bench->engine.control().wait(
            [](Control::State& state) { return state.store.events_after(0, 1000).value(); });
        for (auto const& event : page.events)
            if (event.kind == EventKind::declaration_refused) all.push_back(event.detail);
        return all;
    }
};

TEST_F(DeclarationsTest, AVmGetsWhatItDeclaresWhenItStarts) {
    observe_anew(*bench);
    EXPECT_THAT(attached(), IsEmpty()) << "it does not run";
    start();
    await(2);
    for (auto const& one : attached()) {
        EXPECT_EQ(one.requested_by, principal_of_metadata(vm1));
        EXPECT_EQ(one.spec.verify_profile, Profile::quick);
        EXPECT_EQ(one.spec.network, "train");
        EXPECT_FALSE(one.config) << "they end with this start";
    }
    EXPECT_THAT(hypervisor.view().vms.at(vm1).live, SizeIs(2));
    EXPECT_NE(attached().at(0).settings.mac, attached().at(1).settings.mac);
}

TEST_F(DeclarationsTest, TheyEndWithTheVmAndComeAgain) {
    start();
    await(2);
    hypervisor.stop(vm1);
    observe_until(*bench, [&] { return bench->desired().attachments.empty(); });
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
    start();
    await(2);
}

TEST_F(DeclarationsTest, AVmThatIsStartedAgainBeforeAnObservationGetsThemAnew) {
    start();
    await(2);
    auto const before = attached().at(0).id;
    hypervisor.stop(vm1);
    start();
    observe_until(*bench, [&] {
        return attached().size() == 2 && !bench->desired().attachments.contains(before);
    });
}

TEST_F(DeclarationsTest, WhatIsDetachedIsNotAttachedAgainInTheSameStart) {
    start();
    await(2);
    EXPECT_EQ(bench->run(Detach{attached().at(0).id}).state, OperationState::succeeded);
    observe_anew(*bench);
    EXPECT_THAT(attached(), SizeIs(1));
}

TEST_F(DeclarationsTest, AnotherVfmgrdKnowsThoseOfThisStart) {
    start();
    await(2);
    bench.reset();
    bench.emplace(kernel, hypervisor, folder.path());
    bench->engine.start_observing();
    observe_anew(*bench);
    EXPECT_THAT(attached(), SizeIs(2));
}

TEST_F(DeclarationsTest, APoolIsClosedUntilAnAdminOpensIt) {
    open_pool(false);
    start();
    observe_until(*bench, [&] { return !refusals().empty(); });
    EXPECT_THAT(refusals(), Contains(HasSubstr("vfctl pool set train --from-metadata on")));
    EXPECT_THAT(attached(), IsEmpty());
    EXPECT_EQ(hypervisor.view().vms.at(vm1).state, VmState::running);
    observe_anew(*bench);
    EXPECT_THAT(refusals(), SizeIs(1)) << "once for each start";
}

TEST_F(DeclarationsTest, WhatCannotBeReadIsReported) {
    hypervisor.change([](HypervisorView& view) {
        view.vms.at(vm1).declared.clear();
        view.vms.at(vm1).declared_wrong = "\"trust\" can't be declared";
    });
    start();
    observe_until(*bench, [&] { return !refusals().empty(); });
    EXPECT_THAT(refusals().at(0), HasSubstr("VM vm1 gets no VF by its metadata: \"trust\""));
}

TEST_F(DeclarationsTest, AVmsTenantLimitsIt) {
    Tenant tenant;
    tenant.name = "blue";
    tenant.vms = {vm1};
    tenant.pools = {"train"};
    tenant.networks = {"train"};
    tenant.quota.attachments = 1;
    ASSERT_TRUE(bench->submit(PutTenant{tenant}));
    start();
    observe_until(*bench, [&] { return !refusals().empty(); });
    EXPECT_THAT(attached(), IsEmpty());
}

}  // namespace
}  // namespace vfmgr
