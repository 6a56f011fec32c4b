// SPDX-License-Identifier: Apache-2.0
// RDMA links by name: created, deleted, restored after a boot and when their netdev is back.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/crash_bench.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/engine/restore.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

SoftRdmaLink const rxe0{"rxe0", SoftRdmaType::rxe, "bond0"};
TrustedNetdevs const trusted_links{"bond0", "eno2"};

NetdevState ethernet() {
    NetdevState netdev;
    netdev.ethernet = netdev.up = true;
    return netdev;
}

KernelView host_with_bond() {
    auto view = igb_host();
    view.network.emplace();
    view.network->rxe_module = true;
    view.network->netdevs["bond0"] = ethernet();
    view.network->netdevs["eno2"] = ethernet();
    return view;
}

struct RdmaLinksTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{host_with_bond()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override { open(trusted_links); }
    void open(TrustedNetdevs const& trust) {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{},
                                        system_clock(), trust);
        look();
    }
    // As the observer does.
    void look() { bench->engine.control().publish(kernel.observe({}).value(), {}, {}); }
    [[nodiscard]] bool there() const { return kernel.view().network->rdma.contains("rxe0"); }
    void used_by(std::string const& comm) {
        kernel.change([&](KernelView& view) {
            view.network->rdma.at("rxe0").users = {{812, comm, "queue pair"}};
        });
    }
    // Returns the end of the next operation that the daemon starts by itself on the link.
    OperationState await_repair(std::size_t count) {
        std::promise<OperationState> promise;
        auto future = promise.get_future();
        bench->engine.control().watch(Deadline::max(), [&, count](Control::State& state, Watch) {
            std::vector<Operation> repairs;
            auto const all = state.store.operations({}, {}).value().items;
            for (auto const& each : all)
                if (each.kind == OperationKind::restore && finished(each)) repairs.push_back(each);
            if (repairs.size() < count) return false;
            promise.set_value(repairs.front().state);
            return true;
        });
        return future.get();
    }
};

TEST_F(RdmaLinksTest, AreMadeKeptAndDeleted) {
    auto const made = bench->run(AddLink{rxe0});
    ASSERT_EQ(made.state, OperationState::succeeded) << made.problem->detail;
    EXPECT_EQ(made.kind, OperationKind::add_rdma_link);
    ASSERT_EQ(made.steps.size(), 1U);
    ASSERT_EQ(made.steps[0].remarks.size(), 1U);
    EXPECT_THAT(made.steps[0].remarks[0], HasSubstr("UDP port 4791"));
    EXPECT_TRUE(there());
    EXPECT_EQ(bench->desired().rdma_links.at("rxe0"), (DesiredRdmaLink{rxe0, 1}));

    auto const again = bench->submit(AddLink{rxe0}).value();
    EXPECT_FALSE(again.operation) << "it is there already";
    EXPECT_EQ(again.revision, 1U);

    auto const deleted = bench->run(RemoveLink{{"rxe0", false}});
    EXPECT_EQ(deleted.state, OperationState::succeeded);
    EXPECT_FALSE(there());
    EXPECT_TRUE(bench->desired().rdma_links.empty());
}

TEST_F(RdmaLinksTest, ADryRunChangesNothing) {
    Intent intent;
    intent.dry_run = true;
    auto const plan = bench->submit(AddLink{rxe0}, intent).value();
    EXPECT_EQ(plan.plan->steps, (std::vector<Step>{AddSoftRdmaLink{rxe0}}));
    EXPECT_FALSE(there());
    EXPECT_TRUE(bench->desired().rdma_links.empty());
    intent.dry_run = false;
    intent.if_match = 7;
    EXPECT_EQ(bench->submit(AddLink{rxe0}, intent).error().problem, Problem::precondition_failed);
}

// A process that opens it after the request was admitted counts, too.
TEST_F(RdmaLinksTest, OneInUseIsNotDeletedUnlessForced) {
    bench->run(AddLink{rxe0});
    used_by("ibv_rc_pingpong");
    auto const late = bench->run(RemoveLink{{"rxe0", false}});
    EXPECT_EQ(late.state, OperationState::failed) << "the published view did not know yet";
    EXPECT_EQ(late.problem->problem, Problem::link_in_use);
    look();
    auto const refused = bench->submit(RemoveLink{{"rxe0", false}});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("ibv_rc_pingpong (pid 812)"));
    EXPECT_FALSE(bench->submit(RemoveLink{{"rxe0", true}})) << "the kernel would wait for it";
    EXPECT_TRUE(there());
    kernel.change([](KernelView& view) {
        view.network->rdma.at("rxe0").users = {{{}, "nvme_rdma", "CM id"}};
    });
    look();
    EXPECT_FALSE(bench->submit(RemoveLink{{"rxe0", false}}));
    EXPECT_EQ(bench->run(RemoveLink{{"rxe0", true}}).state, OperationState::succeeded);
    EXPECT_FALSE(there());
}

TEST_F(RdmaLinksTest, AFailureLeavesNothingBehind) {
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::after};
    auto const failed = bench->run(AddLink{rxe0});
    EXPECT_EQ(failed.state, OperationState::failed);
    EXPECT_FALSE(there()) << "it was made before it failed, and undone";
    EXPECT_TRUE(bench->desired().rdma_links.empty());
    // A link of that name is another's: the kernel refuses, as the observation did not show it.
    kernel.fail_at.reset();
    EXPECT_EQ(bench->run(AddLink{rxe0}).state, OperationState::succeeded);
}

TEST_F(RdmaLinksTest, ABootBringsThemBack) {
    bench->run(AddLink{rxe0});
    bench->run(AddLink{{"rxe1", SoftRdmaType::rxe, "eno2"}});
    bench.reset();
    auto booted = host_with_bond();
    booted.network->netdevs.erase("bond0");  // its network service starts later
    FakeKernel host{booted};
    auto control = open_control(folder.path());
    auto const said = restore(host, *control, system_clock(), trusted_links).value();
    EXPECT_THAT(said, testing::ElementsAre("rxe0: waits for bond0",
                                           "rxe1: create the rxe link rxe1 on eno2"));
    EXPECT_TRUE(host.view().network->rdma.contains("rxe1"));
    EXPECT_THAT(restore(host, *control, system_clock(), trusted_links).value()[1],
                HasSubstr("nothing to restore"));
    EXPECT_THAT(restore(host, *control, system_clock(), {}).value()[0],
                HasSubstr("no longer among trusted_netdevs"));
}

// A PF with an attachment that needs SoftRoCE gets a link of vfmgr's own only if it has none.
TEST_F(RdmaLinksTest, ABootMakesThemBeforeTheRespondersOwn) {
    auto host = host_with_bond();
    host.network->netdevs["enp1s0"] = ethernet();
    kernel.change([&](KernelView& view) { view = host; });
    hypervisor.add(make_vm("vm1", vm1));
    ASSERT_TRUE(hypervisor.start(vm1));
    open({"enp1s0"});
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    SoftRdmaLink const on_pf{"rxe0", SoftRdmaType::rxe, "enp1s0"};
    EXPECT_EQ(bench->run(AddLink{on_pf}).state, OperationState::succeeded);
    EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
    EXPECT_EQ(kernel.view().pfs.at(pf0).info.rdma_device, "rxe0") << "one is enough";
    bench.reset();
    FakeKernel booted{host};
    auto control = open_control(folder.path());
    ASSERT_TRUE(restore(booted, *control, system_clock(), {"enp1s0"}));
    EXPECT_TRUE(booted.view().network->rdma.contains("rxe0"));
    EXPECT_EQ(booted.view().pfs.at(pf0).info.rdma_device, "rxe0");
}

TEST_F(RdmaLinksTest, OneThatWentWithItsNetdevComesBackWithIt) {
    bench->run(AddLink{rxe0});
    kernel.remove_netdev("bond0");
    ASSERT_FALSE(there());
    bench->engine.start_observing();
    bench->engine.observe_again();
    kernel.add_netdev("bond0", ethernet());
    bench->engine.observe_again();
    EXPECT_EQ(await_repair(1), OperationState::succeeded);
    EXPECT_TRUE(there());
}

// A refusal that no fact predicted is not retried every few seconds.
TEST_F(RdmaLinksTest, ARepairThatFailsIsNotTriedAtOnceAgain) {
    bench->run(AddLink{rxe0});
    kernel.change([](KernelView& view) { view.network->rdma.clear(); });
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    bench->engine.start_observing();
    EXPECT_EQ(await_repair(1), OperationState::failed);
    kernel.fail_at.reset();
    auto const looks = kernel.observed();
    while (kernel.observed() < looks + 3) bench->engine.observe_again();
    EXPECT_FALSE(there());
    // Its netdev goes and comes: the obstacle may have gone, too.
    kernel.remove_netdev("bond0");
    auto const gone = kernel.observed();
    while (kernel.observed() < gone + 3) bench->engine.observe_again();
    kernel.add_netdev("bond0", ethernet());
    EXPECT_EQ(await_repair(2), OperationState::succeeded);
    EXPECT_TRUE(there());
}

TEST_F(RdmaLinksTest, NoneIsMadeAgainWhereNobodyTrustsAnyMore) {
    bench->run(AddLink{rxe0});
    kernel.change([](KernelView& view) { view.network->rdma.clear(); });
    open({"eno2"});
    bench->engine.start_observing();
    auto const looks = kernel.observed();
    while (kernel.observed() < looks + 3) bench->engine.observe_again();
    EXPECT_FALSE(there());
}

struct RdmaLinkCrash : RdmaLinksTest {
    LossyDisk disk;
    Watched watched{kernel, hypervisor, disk};

    std::vector<Moment> moments_of(Command const& command) {
        bench.reset();
        Bench crashing(watched, watched, folder.path(), {}, system_clock(), trusted_links);
        crashing.engine.control().publish(kernel.observe({}).value(), {}, {});
        return watched.moments_of(
            [&] { EXPECT_EQ(crashing.run(command).state, OperationState::succeeded); });
    }
    // The host is in the old state or the new one, as the desired state decides.
    void expect_well(std::vector<Moment> const& moments) {
        for (auto const& moment : moments) {
            disk.start_from(moment.disk);
            FakeKernel host{moment.power_failed ? host_with_bond() : moment.host.kernel};
            FakeHypervisor libvirt{host};
            if (moment.power_failed) {
                auto control = open_control(folder.path());
                EXPECT_TRUE(restore(host, *control, system_clock(), trusted_links)) << moment.what;
            }
            Bench after(host, libvirt, folder.path(), {}, system_clock(), trusted_links);
            EXPECT_TRUE(after.recovered) << moment.what;
            EXPECT_EQ(host.view().network->rdma.contains("rxe0"),
                      after.desired().rdma_links.contains("rxe0"))
                << moment.what;
        }
        EXPECT_GE(watched.points(), 20U);
    }
};

TEST_F(RdmaLinkCrash, AnAdditionIsWell) {
    expect_well(moments_of(AddLink{rxe0}));
}

TEST_F(RdmaLinkCrash, ADeletionIsWell) {
    bench->run(AddLink{rxe0});
    expect_well(moments_of(RemoveLink{{"rxe0", false}}));
}

}  // namespace
}  // namespace vfmgr
