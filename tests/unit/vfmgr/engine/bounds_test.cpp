// SPDX-License-Identifier: Apache-2.0
// The engine within root's bounds: what is beyond them is refused before anything is begun, dry
// runs too; what restores a state is not held to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

struct BoundsTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};

    BoundsTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
    }
    std::unique_ptr<Bench> bounded(PfBounds own) {
        HostBounds bounds;
        bounds.pfs[pf0] = std::move(own);
        return std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{},
                                       system_clock(), TrustedNetdevs{}, FindOwners{},
                                       std::move(bounds));
    }
};

AttachmentSpec with_trust_on() {
    AttachmentSpec spec;
    spec.vm = "vm1";
    spec.pf = pf0;
    spec.settings.trust = true;
    return spec;
}

TEST_F(BoundsTest, WhatIsBeyondThemIsRefusedBeforeItIsBegun) {
    auto const bench = bounded({.num_vfs_max = 2, .trust = false});
    EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)}).state, OperationState::succeeded);
    auto const before = kernel.performed();
    auto const more = bench->submit(ReplacePfSpec{pf0, spec_with_vfs(3)});
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().problem, Problem::forbidden);
    Intent look;
    look.dry_run = true;
    for (auto const& intent : {Intent{}, look}) {
        auto const attach = bench->submit(Attach{with_trust_on()}, intent);
        ASSERT_FALSE(attach);
        EXPECT_EQ(attach.error().problem, Problem::forbidden);
        EXPECT_THAT(attach.error().detail, HasSubstr("trust on is not allowed"));
    }
    EXPECT_EQ(kernel.performed(), before);
    EXPECT_THAT(bench->desired().attachments, IsEmpty());
}

TEST_F(BoundsTest, AVfIsHeldToItsVlanWhetherItIsNamedOrNot) {
    auto const bench = bounded({.vlans = {{{100, 199}}}});
    EXPECT_EQ(bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)}).state, OperationState::succeeded);
    AttachmentSpec untagged;
    untagged.vm = "vm1";
    untagged.pf = pf0;
    auto const refused = bench->submit(Attach{untagged});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("VLAN 0 is not allowed"));
    auto const attached = bench->run(Attach{ask()});
    EXPECT_EQ(attached.state, OperationState::succeeded)
        << "the network is in VLAN 100, and the PF's own link is set up for it: "
        << attached.problem.value_or(Error{}).detail;
}

TEST_F(BoundsTest, WhatWasAttachedBeforeTheyWereNarrowedIsDetached) {
    std::string id;
    {
        Bench free(kernel, hypervisor, folder.path());
        EXPECT_EQ(free.run(ReplacePfSpec{pf0, spec_with_vfs(2)}).state, OperationState::succeeded);
        EXPECT_EQ(free.run(Attach{with_trust_on()}).state, OperationState::succeeded);
        id = free.desired().attachments.begin()->first;
    }
    auto const bench = bounded({.managed = false});
    ASSERT_FALSE(bench->submit(Attach{with_trust_on()}));
    EXPECT_EQ(bench->run(Detach{id}).state, OperationState::succeeded);
    EXPECT_THAT(bench->desired().attachments, IsEmpty());
    EXPECT_THAT(bench->desired().quarantine, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
