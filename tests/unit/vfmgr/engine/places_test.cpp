// SPDX-License-Identifier: Apache-2.0
// Places of operations: one that waits for a guest blocks no other work, and nothing blocks a
// detach.
#include "vfmgr/engine/claims.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using Work = PlaceRequest::Work;

PlaceLimits small() {
    return {2, 2, 4, 3};
}

TEST(Places, AreLimitedForEachKindOfWork) {
    Places places(small());
    for (auto const* id : {"a", "b"}) {
        ASSERT_TRUE(places.enter(id, {Work::changes, {}}));
        ASSERT_TRUE(places.enter(std::string("detach ") + id, {Work::detaches, {}}));
    }
    EXPECT_EQ(places.enter("c", {Work::changes, {}}).error().problem, Problem::unavailable);
    EXPECT_EQ(places.enter("c", {Work::detaches, {}}).error().problem, Problem::unavailable);
    places.leave("a");
    EXPECT_FALSE(places.enter("c", {Work::detaches, {}}));
    EXPECT_TRUE(places.enter("c", {Work::changes, {}}));
}

TEST(Places, OfThoseThatWaitEachVmHasAShare) {
    Places places(small());
    for (auto const* id : {"a", "b", "c"}) ASSERT_TRUE(places.enter(id, {Work::none, "vm1"}));
    EXPECT_THAT(places.enter("d", {Work::none, "vm1"}).error().detail,
                HasSubstr("wait for VM vm1"));
    EXPECT_TRUE(places.enter("d", {Work::none, "vm2"}));
    EXPECT_THAT(places.enter("e", {Work::none, "vm3"}).error().detail, HasSubstr("wait for VMs"));
    EXPECT_TRUE(places.enter("e", {Work::changes, {}}));
}

TEST(Places, WhoWaitsForAGuestDoesNotWorkMeanwhile) {
    Places places(small());
    for (auto const* id : {"a", "b"}) ASSERT_TRUE(places.enter(id, {Work::changes, "vm1"}));
    ASSERT_FALSE(places.enter("c", {Work::changes, {}}));
    places.rest("a");
    EXPECT_TRUE(places.enter("c", {Work::changes, {}}));
    places.resume("a");
    places.leave("c");
    EXPECT_FALSE(places.enter("d", {Work::changes, {}})) << "a and b work";
}

struct PlacesInUse : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path()};

    PlacesInUse() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).free_pcie_ports = 8; });
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    }
    std::string attach(VerifyMode verify) {
        auto spec = ask();
        spec.verify = verify;
        return bench.submit(Attach{spec}).value().operation->id;
    }
};

TEST_F(PlacesInUse, ASilentGuestKeepsNobodyFromDetaching) {
    bench.ended(attach(VerifyMode::none));
    auto const id = bench.desired().attachments.begin()->first;
    std::vector<std::string> asked;
    for (int i = 0; i < 100; ++i)
        if (auto const answer = bench.submit(Verify{id, 600}))
            asked.push_back(answer->operation->id);
    EXPECT_EQ(asked.size(), PlaceLimits{}.waiting_of_a_vm_max);
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::succeeded);
    for (auto const& verification : asked)
        EXPECT_EQ(bench.ended(verification).problem->problem, Problem::not_found);
}

// They wait for the PF, which the first one changes.
TEST_F(PlacesInUse, ChangesThatQueueUpKeepNobodyFromDetaching) {
    bench.ended(attach(VerifyMode::none));
    auto const id = bench.desired().attachments.begin()->first;
    std::promise<void> begun;
    std::promise<void> go_on;
    kernel.on_perform = [&, first = true](KernelStep const&) mutable {
        if (!std::exchange(first, false)) return;
        begun.set_value();
        go_on.get_future().wait();
    };
    auto const holding = attach(VerifyMode::none);
    begun.get_future().wait();
    std::vector<std::string> queued;
    auto expected = spec_with_vfs(7);
    expected.mode = PfMode::enforce;
    while (auto const answer = bench.submit(ReplacePfSpec{pf0, expected}))
        queued.push_back(answer->operation->id);
    EXPECT_EQ(queued.size(), PlaceLimits{}.changing_max - 1);
    auto const back = bench.submit(Detach{id});
    EXPECT_TRUE(back);
    go_on.set_value();
    for (auto const& one : queued) EXPECT_EQ(bench.ended(one).state, OperationState::succeeded);
    EXPECT_EQ(bench.ended(holding).state, OperationState::succeeded);
    if (back) {
        EXPECT_EQ(bench.ended(back->operation->id).state, OperationState::succeeded);
    }
    kernel.on_perform = {};
}

TEST_F(PlacesInUse, AnAttachThatWaitsForItsGuestIsOneOfTheVmsWaiting) {
    auto const proving = attach(VerifyMode::required);
    while (bench.engine.snapshot().runs->empty()) std::this_thread::yield();
    auto const id = bench.desired().attachments.begin()->first;
    std::size_t more = 0;
    while (bench.submit(Verify{id, 600})) ++more;
    EXPECT_EQ(more, PlaceLimits{}.waiting_of_a_vm_max - 1);
    EXPECT_EQ(bench.run(Detach{id}).state, OperationState::succeeded);
    EXPECT_EQ(bench.ended(proving).state, OperationState::failed);
    EXPECT_EQ(bench.desired().attachments.size(), 0U);
}

}  // namespace
}  // namespace vfmgr
