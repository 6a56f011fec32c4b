// SPDX-License-Identifier: Apache-2.0
// PF identities are stored with the desired state, and decide at boot what a VM may get.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/engine/restore.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

MacAddress const strange{{0x52, 0x54, 0, 0xbb, 0, 9}};

struct IdentitiesTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    PfIdentity const igb = igb_host().pfs.at(pf0).info.identity;

    IdentitiesTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
    }
    void attach() {
        Bench bench(kernel, hypervisor, folder.path());
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
        EXPECT_EQ(bench.run(Attach{ask()}).state, OperationState::succeeded);
    }
    // Observes and publishes the view.
    void look(Bench& bench) const {
        have_looked(bench.engine, kernel);
        EXPECT_TRUE(bench.engine.control().wait([](Control::State&) { return true; }));
    }
    // As an earlier vfmgrd left it.
    void forget_identities() {
        auto control = open_control(folder.path());
        Batch batch;
        batch.erase_identities = {pf0};
        EXPECT_TRUE(control->wait([&](Control::State& state) { return state.commit(batch); }));
    }
};

TEST_F(IdentitiesTest, AreKeptWithTheFirstSpec) {
    Bench bench(kernel, hypervisor, folder.path());
    EXPECT_THAT(bench.desired().identities, IsEmpty());
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    EXPECT_EQ(bench.desired().identities, (std::map<PciAddress, PfIdentity>{{pf0, igb}}))
        << "without a further look";
    bench.engine.start_observing();
    look(bench);
    EXPECT_EQ(bench.run(ForgetPf{pf0}).state, OperationState::succeeded);
    look(bench);
    EXPECT_THAT(bench.desired().identities, IsEmpty()) << "nothing is kept of the PF any more";
}

TEST_F(IdentitiesTest, AreLearnedAtTheFirstLookFromAnEarlierStore) {
    attach();
    forget_identities();
    Bench bench(kernel, hypervisor, folder.path());
    EXPECT_THAT(bench.desired().identities, IsEmpty());
    bench.engine.start_observing();
    look(bench);
    EXPECT_EQ(bench.desired().identities, (std::map<PciAddress, PfIdentity>{{pf0, igb}}));
    kernel.change([](KernelView& host) { host.pfs.at(pf0).info.identity.mac = strange; });
    look(bench);
    EXPECT_EQ(bench.desired().identities.at(pf0), igb) << "and never from another device";
}

// After a card was added the address in the VM's XML is another device's.
TEST_F(IdentitiesTest, ABootBindsNothingOfAnotherDevice) {
    attach();
    hypervisor.stop(vm1);
    auto host = igb_host();
    host.pfs.at(pf0).info.identity.mac = strange;
    FakeKernel booted{host};
    auto control = open_control(folder.path());
    auto const said = restore(booted, *control, system_clock()).value();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0], HasSubstr("another device (MAC 52:54:00:bb:00:09) is at 0000:01:00.0"));
    EXPECT_THAT(booted.steps(), IsEmpty());
    FakeHypervisor libvirt{booted};
    libvirt.change([&](HypervisorView& view) { view = hypervisor.view(); });
    EXPECT_FALSE(libvirt.start(vm1)) << "rather than with a device that is not its own";
}

TEST_F(IdentitiesTest, OfAnotherDeviceDriftIsToldAndNothingRepaired) {
    attach();
    Bench bench(kernel, hypervisor, folder.path());
    bench.engine.start_observing();
    kernel.change([](KernelView& host) { host.pfs.erase(pf0); });
    look(bench);
    auto const events = bench.engine.control().wait(
        [](Control::State& state) { return state.store.events(VfId{pf0, 0}, {}); });
    ASSERT_FALSE(events->items.empty());
    EXPECT_EQ(events->items.front().kind, EventKind::drift);
    EXPECT_THAT(events->items.front().detail, HasSubstr("is not on this host"));
    EXPECT_EQ(bench.desired().attachments.size(), 1U) << "a look ends nothing";
    auto const id = bench.desired().attachments.begin()->first;
    EXPECT_EQ(bench.run(Detach{id}).problem->problem, Problem::pf_gone);
}

}  // namespace
}  // namespace vfmgr
