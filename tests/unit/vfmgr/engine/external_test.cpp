// SPDX-License-Identifier: Apache-2.0
// Attachments to VMMs that libvirt does not run: their end waits for nobody, and is made up for
// when the VMM has let go.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

struct ExternalHolderTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Bench bench{kernel, hypervisor, folder.path(),       {}, system_clock(),
                {},     {},         bounds_for_holders()};

    ExternalHolderTest() { bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)}); }
    Attachment attach() {
        auto const attached = bench.run(Attach{ask_external()});
        EXPECT_EQ(attached.state, OperationState::succeeded)
            << (attached.problem ? attached.problem->detail : "");
        return bench.desired().attachments.begin()->second;
    }
    [[nodiscard]] VfState vf_of(Attachment const& attachment) const {
        return *find_vf({kernel.view(), {}}, attachment.vf);
    }
    void hold(Attachment const& attachment) { kernel.hold(attachment.vf_pci, {812, "qemu-kvm"}); }
    void let_go(Attachment const& attachment) { kernel.release(attachment.vf_pci, 812); }
    [[nodiscard]] AttachmentState state_of(Attachment const& attachment) const {
        return bench.desired().attachments.at(attachment.id).state;
    }
};

TEST_F(ExternalHolderTest, TheUserHasTheNodesUntilTheEnd) {
    kernel.on_perform = [this](KernelStep const& step) {
        if (!std::holds_alternative<AttachExternal>(step)) return;
        kernel.change([](KernelView& host) { host.pfs.at(pf0).vfs.front().vfio->owner = 107; });
    };
    auto const attachment = attach();
    EXPECT_EQ(vf_of(attachment).vfio->owner, holders_uid);
    EXPECT_EQ(attachment.node_owner, 0U) << "as observed before the step";
    EXPECT_EQ(attachment.holder, ask_external().holder);
    auto const ended = bench.run(Detach{attachment.id});
    EXPECT_EQ(ended.state, OperationState::succeeded);
    ASSERT_TRUE(ended.certificate);
    EXPECT_EQ(ended.certificate->vm, "qm-104");
    EXPECT_EQ(kernel.resets(attachment.vf), 1U);
    EXPECT_FALSE(vf_of(attachment).driver);
}

TEST_F(ExternalHolderTest, NodesOfAVfThatStaysBoundGoToTheirOwner) {
    auto spec = spec_with_vfs(2);
    spec.vf_driver = "vfio-pci";
    bench.run(ReplacePfSpec{pf0, spec});
    auto const attachment = attach();
    EXPECT_EQ(bench.run(Detach{attachment.id}).state, OperationState::succeeded);
    ASSERT_TRUE(vf_of(attachment).vfio);
    EXPECT_EQ(vf_of(attachment).vfio->owner, 0U);
}

TEST_F(ExternalHolderTest, AnEndWhileAProcessHoldsTheVfLeavesItDetaching) {
    auto const attachment = attach();
    hold(attachment);
    for (int tries = 0; tries < 2; ++tries) {
        auto const refused = bench.run(Detach{attachment.id});
        EXPECT_EQ(refused.state, OperationState::failed);
        EXPECT_EQ(refused.problem->problem, Problem::vf_in_use);
        EXPECT_THAT(refused.problem->detail, HasSubstr("held open by qemu-kvm (pid 812)"));
        EXPECT_THAT(refused.problem->remedy, HasSubstr("vfctl detach " + attachment.id));
        EXPECT_EQ(state_of(attachment), AttachmentState::detaching);
        EXPECT_TRUE(bench.desired().quarantine.empty());
        auto const vf = vf_of(attachment);
        EXPECT_EQ(vf.driver, "vfio-pci") << "nothing is taken from it";
        EXPECT_EQ(vf.settings.mac, attachment.settings.mac);
        EXPECT_EQ(vf.vfio->owner, 0U) << "nobody else opens it";
    }
    EXPECT_EQ(kernel.resets(attachment.vf), 0U);
    let_go(attachment);
    EXPECT_EQ(bench.run(Detach{attachment.id}).state, OperationState::succeeded);
    EXPECT_TRUE(bench.desired().attachments.empty());
    EXPECT_EQ(kernel.resets(attachment.vf), 1U);
}

TEST_F(ExternalHolderTest, ItEndsByItselfOnceTheProcessHasLetGo) {
    bench.engine.start_observing();
    auto const attachment = attach();
    hold(attachment);
    bench.run(Detach{attachment.id});
    have_looked(bench.engine, kernel);
    EXPECT_EQ(state_of(attachment), AttachmentState::detaching);
    std::promise<void> ended;
    bench.engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (!state.desired().attachments.empty()) return false;
        ended.set_value();
        return true;
    });
    let_go(attachment);
    bench.engine.observe_again();
    ended.get_future().get();
    EXPECT_EQ(kernel.resets(attachment.vf), 1U);
}

// Its settings are not changed any more, and it is in use for everybody else.
TEST_F(ExternalHolderTest, WhatIsDetachingIsNobodyElses) {
    auto const attachment = attach();
    hold(attachment);
    bench.run(Detach{attachment.id});
    EXPECT_EQ(bench.run(ChangeAttachment{attachment.id, {}}).problem->problem, Problem::conflict);
    auto spec = ask_external();
    spec.vf = attachment.vf.index;
    EXPECT_EQ(bench.run(Attach{spec}).problem->problem, Problem::vf_in_use);
    EXPECT_EQ(bench.run(ReplacePfSpec{pf0, spec_with_vfs(1)}).problem->problem, Problem::vf_in_use);
}

TEST_F(ExternalHolderTest, AHolderHasSeveral) {
    attach();
    attach();
    auto const desired = bench.desired();
    ASSERT_EQ(desired.attachments.size(), 2U);
    std::vector<std::string> ids;
    for (auto const& [id, one] : desired.attachments) ids.push_back(id);
    EXPECT_EQ(bench.run(Detach{ids}).state, OperationState::succeeded);
}

TEST_F(ExternalHolderTest, OneOfASetThatIsHeldKeepsNoOther) {
    EXPECT_EQ(bench.run(Attach{std::vector(2, ask_external())}).state, OperationState::succeeded);
    auto const desired = bench.desired();
    std::vector<std::string> ids;
    for (auto const& [id, one] : desired.attachments) ids.push_back(id);
    hold(desired.attachments.at(ids[0]));
    auto const detached = bench.run(Detach{ids});
    EXPECT_THAT(detached.problem->detail, HasSubstr("1 of 2 attachments were not detached"));
    auto const left = bench.desired().attachments;
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left.begin()->first, ids[0]);
}

TEST_F(ExternalHolderTest, NothingIsVerified) {
    auto const attachment = attach();
    auto const refused = bench.submit(Verify{attachment.id});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_THAT(refused.error().detail, HasSubstr("qm-104 is no VM of libvirt"));
}

TEST_F(ExternalHolderTest, BeyondRootsBoundsNothingBegins) {
    auto spec = ask_external();
    spec.holder->uid = holders_uid + 1;
    for (auto const dry_run : {true, false}) {
        Intent intent;
        intent.dry_run = dry_run;
        auto const refused = bench.submit(Attach{spec}, intent);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::forbidden);
    }
    EXPECT_TRUE(bench.desired().attachments.empty());
}

TEST_F(ExternalHolderTest, ItIsNoTenants) {
    Tenant blue;
    blue.name = "blue";
    bench.submit(PutTenant{blue}).value();
    Intent intent;
    intent.tenant = "blue";
    auto const refused = bench.submit(Attach{ask_external()}, intent);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::forbidden);
    auto const& violations = refused.error().violations;
    EXPECT_TRUE(std::ranges::any_of(violations,
                                    [](Violation const& one) { return one.pointer == "/holder"; }));
}

TEST_F(ExternalHolderTest, EventsNameTheHolderAndNoVm) {
    auto const attachment = attach();
    auto const events = bench.engine.control().wait(
        [](Control::State& state) { return state.store.events_after(0, 1000).value().events; });
    auto const attached = std::ranges::find(events, EventKind::attached, &Event::kind);
    ASSERT_NE(attached, events.end());
    EXPECT_EQ(attached->vm, "qm-104");
    EXPECT_EQ(attached->vm_uuid, std::nullopt);
}

}  // namespace
}  // namespace vfmgr
