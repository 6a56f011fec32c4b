// SPDX-License-Identifier: Apache-2.0
// Networks of the host: stored at once, and what becomes of them when their PF goes or moves.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct NetworksTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());

    [[nodiscard]] static Network second() {
        Network network;
        network.name = "second";
        network.prefix = IpPrefix::parse("192.168.60.0/24").value();
        network.pfs = {{pf0, IpAddress::parse("192.168.60.1").value()}};
        return network;
    }
    [[nodiscard]] Networks networks() const { return bench->desired().networks; }
    [[nodiscard]] std::vector<PciAddress> pfs_of_train() const {
        std::vector<PciAddress> pfs;
        auto const train = networks().at("train");
        for (auto const& on : train.network.pfs) pfs.push_back(on.pf);
        return pfs;
    }
};

TEST_F(NetworksTest, AreStoredAtOnceWithARevision) {
    auto const answer = bench->submit(PutNetwork{second()});
    ASSERT_TRUE(answer) << answer.error().detail;
    EXPECT_FALSE(answer->operation);
    auto const first = networks().at("second");
    EXPECT_EQ(first.network, second());
    EXPECT_TRUE(bench->submit(PutNetwork{second()}));
    EXPECT_EQ(networks().at("second").revision, first.revision) << "nothing changed";
    Intent stale;
    stale.if_match = first.revision + 1;
    auto changed = second();
    changed.mtu = 9000;
    EXPECT_EQ(bench->submit(PutNetwork{changed}, stale).error().problem,
              Problem::precondition_failed);
    stale.if_match = first.revision;
    EXPECT_TRUE(bench->submit(PutNetwork{changed}, stale));
    EXPECT_GT(networks().at("second").revision, first.revision);
    bench.reset();
    bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
    EXPECT_EQ(networks().at("second").network, changed) << "a restart keeps it";
    EXPECT_TRUE(bench->submit(RemoveNetwork{"second"}));
    EXPECT_FALSE(networks().contains("second"));
}

TEST_F(NetworksTest, ADryRunStoresNothing) {
    Intent dry;
    dry.dry_run = true;
    auto const answer = bench->submit(PutNetwork{second()}, dry).value();
    EXPECT_EQ(answer.plan, Plan{});
    EXPECT_EQ(answer.revision, 0U);
    EXPECT_FALSE(networks().contains("second"));
    EXPECT_TRUE(bench->submit(RemoveNetwork{"train"}, dry));
    EXPECT_TRUE(networks().contains("train"));
}

TEST_F(NetworksTest, LoseAPfThatDoesNotComeBackAndFollowOneThatMoved) {
    PciAddress const pf2{0, 3, 0, 0};
    bench->engine.start_observing();
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    auto const revision = networks().at("train").revision;
    auto moved = make_igb_pf("0000:03:00.0", "enp3s0");
    kernel.change([&](KernelView& host) {
        moved.info.identity = host.pfs.at(pf0).info.identity;
        host.pfs.erase(pf0);
        host.pfs[pf2] = moved;
    });
    auto const rekeyed = bench->run(RekeyPf{pf0, pf2});
    ASSERT_EQ(rekeyed.state, OperationState::succeeded) << rekeyed.problem->detail;
    EXPECT_EQ(pfs_of_train(), (std::vector{pf2, pf1}));
    EXPECT_GT(networks().at("train").revision, revision);
    kernel.change([&](KernelView& host) { host.pfs.erase(pf2); });
    auto const gone = bench->run(ConfirmGonePf{pf2});
    ASSERT_EQ(gone.state, OperationState::succeeded) << gone.problem->detail;
    EXPECT_EQ(pfs_of_train(), (std::vector{pf1}));
}

}  // namespace
}  // namespace vfmgr
