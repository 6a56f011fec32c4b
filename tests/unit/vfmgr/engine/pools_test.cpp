// SPDX-License-Identifier: Apache-2.0
// Attaching without a PF, and reservations: their time, and what becomes of them.
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct PoolsTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{two_rails()};
    FakeHypervisor hypervisor{kernel};
    FakeClock clock;
    std::unique_ptr<Bench> bench;

    static KernelView two_rails() {
        auto view = igb_host();
        view.pfs[pf1] = make_igb_pf("0000:02:00.0", "enp2s0");
        return view;
    }
    PoolsTest() {
        hypervisor.add(make_vm("vm1", vm1));
        hypervisor.add(make_vm("vm2", vm2));
        for (auto const* const uuid : {vm1, vm2}) EXPECT_TRUE(hypervisor.start(uuid));
        start();
        for (auto const& pf : {pf0, pf1}) bench->run(ReplacePfSpec{pf, spec_with_vfs(2)});
    }
    void start() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    static AttachmentSpec anywhere() {
        auto spec = ask();
        spec.pf.reset();
        return spec;
    }
    Result<Answer> reserve(std::uint16_t count, std::string const& by = "uid:0") {
        ReservationSpec spec;
        spec.network = "train";
        spec.count = count;
        spec.seconds = 60;
        Intent intent;
        intent.requested_by = by;
        return bench->submit(Reserve{"job", spec}, intent);
    }
    [[nodiscard]] std::vector<VfId> kept() const {
        auto const desired = bench->desired();
        auto const job = desired.reservations.find("job");
        return job == desired.reservations.end() ? std::vector<VfId>{} : job->second.vfs;
    }
};

TEST_F(PoolsTest, AVmsVfsAreOnPfsOfTheirOwn) {
    for (int i = 0; i < 2; ++i) {
        auto const done = bench->run(Attach{anywhere()});
        ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    }
    std::set<PciAddress> pfs;
    auto const desired = bench->desired();
    for (auto const& [id, attachment] : desired.attachments) {
        pfs.insert(attachment.vf.pf);
        EXPECT_EQ(attachment.candidates.size(), 2U);
        EXPECT_FALSE(attachment.spec.pf) << "as it was requested";
    }
    EXPECT_EQ(pfs, (std::set{pf0, pf1}));
}

TEST_F(PoolsTest, AReservationIsUsedUpByItsAttachments) {
    ASSERT_TRUE(reserve(2));
    EXPECT_EQ(kept().size(), 2U);
    auto mine = anywhere();
    mine.reservation = "job";
    EXPECT_EQ(bench->run(Attach{mine}).state, OperationState::succeeded);
    EXPECT_EQ(bench->run(Attach{mine}).state, OperationState::succeeded);
    EXPECT_EQ(bench->submit(Attach{mine}).error().problem, Problem::not_found) << "it is used up";
    EXPECT_TRUE(kept().empty());
    auto others = anywhere();
    others.vm = "vm2";
    EXPECT_TRUE(bench->submit(Attach{others})) << "the others are free";
}

TEST_F(PoolsTest, AReservationExpiresAlsoOverARestart) {
    ASSERT_TRUE(reserve(4));
    EXPECT_EQ(bench->submit(Attach{anywhere()}).error().problem, Problem::limit_exceeded);
    start();
    EXPECT_EQ(kept().size(), 4U);
    EXPECT_EQ(bench->submit(Attach{anywhere()}).error().problem, Problem::limit_exceeded);
    clock.advance(std::chrono::seconds(61));
    EXPECT_EQ(bench->run(Attach{anywhere()}).state, OperationState::succeeded);
    EXPECT_TRUE(kept().empty());
}

TEST_F(PoolsTest, AReservationIsItsHolders) {
    ASSERT_TRUE(reserve(1));
    EXPECT_EQ(reserve(2, "token:b").error().problem, Problem::conflict);
    EXPECT_TRUE(reserve(3));
    EXPECT_EQ(kept().size(), 3U);
    EXPECT_TRUE(bench->submit(Release{"job"}));
    EXPECT_TRUE(kept().empty());
    EXPECT_EQ(bench->submit(Release{"job"}).error().problem, Problem::not_found);
}

TEST_F(PoolsTest, PoolsAndIdentitiesAreStoredWithRevisions) {
    Pool pool;
    pool.name = "fast";
    pool.defaults.network = "train";
    EXPECT_TRUE(bench->submit(PutPool{pool}));
    auto const revision = bench->desired().pools.at("fast").revision;
    EXPECT_TRUE(bench->submit(PutPool{pool}));
    EXPECT_EQ(bench->desired().pools.at("fast").revision, revision) << "nothing changed";
    EXPECT_EQ(bench->submit(RemoveNetwork{"train"}).error().problem, Problem::conflict);
    Identities identities;
    identities.macs = {Range<MacAddress>::parse("52:54:00:00:00:01-52:54:00:00:00:ff").value()};
    EXPECT_TRUE(bench->submit(PutIdentities{identities}));
    start();
    EXPECT_EQ(bench->desired().handed_out.identities, identities);
    EXPECT_EQ(bench->desired().pools.at("fast").pool, pool);
    EXPECT_TRUE(bench->submit(RemovePool{"fast"}));
    auto const done = bench->run(Attach{anywhere()});
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    auto const desired = bench->desired();
    EXPECT_TRUE(identities.macs[0].contains(*desired.attachments.begin()->second.settings.mac));
}

}  // namespace
}  // namespace vfmgr
