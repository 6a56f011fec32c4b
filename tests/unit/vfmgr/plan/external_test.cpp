// SPDX-License-Identifier: Apache-2.0
// VFs for VMMs that libvirt does not run: everything but libvirt's steps, and the VFIO nodes.
#include "vfmgr/plan/external.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/released.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t holders_uid = 64055;
VfId const vf0{pf_address, 0};

AttachmentSpec ask_external(std::optional<std::uint32_t> of = holders_uid) {
    auto spec = ask("");
    spec.holder = ExternalHolder{HolderKind::external, "qm-104", of};
    return spec;
}

// qm-104 has VF 0, bound, with nodes of `owner`.
struct HasVf0 {
    HostView view = host();
    DesiredState goal = with_attachment(desired(), host(), "aaaa0001", ask_external());

    explicit HasVf0(std::uint32_t owner = holders_uid) {
        auto& attachment = goal.attachments.at("aaaa0001");
        attachment.node_owner = 107;
        auto& vf = vf_state();
        vf.driver = "vfio-pci";
        vf.vfio = VfioPaths{"/dev/vfio/20", {}, owner};
        vf.settings = overlay(vf.settings, attachment.settings);
    }
    VfState& vf_state() { return view.kernel.pfs[pf_address].vfs[0]; }
    Attachment& attachment() { return goal.attachments.at("aaaa0001"); }
    void hold() { vf_state().holders.push_back({812, "qemu-system-x86"}); }
    [[nodiscard]] std::vector<Step> detach() {
        return plan_detach(view, goal, attachment()).value().steps;
    }
    [[nodiscard]] std::vector<AttachExternal> restore() {
        return steps_of<AttachExternal>(plan_restore(view, goal, pf_address).value());
    }
};

std::string refusal_of(HostView const& view, AttachmentSpec const& spec) {
    auto const planned = plan(view, desired(), spec);
    if (planned) return {};
    EXPECT_FALSE(planned.error().remedy.empty());
    return planned.error().detail;
}

TEST(PlanExternal, AttachesWithoutLibvirtsSteps) {
    auto const planned = plan(host(), desired(), ask_external()).value();
    auto const& steps = planned.plan.steps;
    EXPECT_THAT(steps_of<AttachHostdev>(planned.plan), IsEmpty());
    ASSERT_GE(steps.size(), 2U);
    auto const external = std::ranges::find_if(
        steps, [](Step const& step) { return as<AttachExternal>(step) != nullptr; });
    ASSERT_NE(external, steps.end());
    EXPECT_EQ(*as<AttachExternal>(*external), (AttachExternal{vf0, "qm-104", holders_uid}));
    EXPECT_EQ(*std::prev(external), Step(BindVfs{pf_address, {0}, "vfio-pci"}))
        << "its nodes are made when it is bound";
    auto const& attachment = planned.attachment;
    EXPECT_EQ(attachment.vm, "qm-104");
    EXPECT_EQ(attachment.vm_uuid, "");
    EXPECT_EQ(attachment.holder, ask_external().holder);
    EXPECT_FALSE(attachment.live || attachment.config);
    EXPECT_TRUE(attachment.settings.mac && attachment.address);
}

TEST(PlanExternal, NeedsNoUid) {
    auto const planned = plan(host(), desired(), ask_external({})).value();
    EXPECT_EQ(steps_of<AttachExternal>(planned.plan),
              (std::vector<AttachExternal>{{vf0, "qm-104", {}}}));
}

TEST(PlanExternal, TwoHoldersGetMacsOfTheirOwnFromOneVf) {
    auto other = ask_external();
    other.holder->name = "qm-105";
    EXPECT_NE(plan(host(), desired(), ask_external()).value().attachment.settings.mac,
              plan(host(), desired(), other).value().attachment.settings.mac);
}

TEST(PlanExternal, NoVfThatAVmsXmlNames) {
    auto view = host();
    view.hypervisor.vms[vm1_uuid].config = {{vf(0).pci, {}}};
    auto spec = ask_external();
    spec.vf = 0;
    EXPECT_THAT(refusal_of(view, spec), HasSubstr("persistent configuration of VM vm1"));
    view.hypervisor.stale = true;
    EXPECT_THAT(refusal_of(view, ask_external()), HasSubstr("libvirt can't be queried"));
}

TEST(PlanExternal, NoUidForAGroupWithAnotherVf) {
    auto view = host();
    view.kernel.pfs[pf_address].vfs[1].iommu_group = vf(0).iommu_group;
    EXPECT_THAT(refusal_of(view, ask_external()), HasSubstr("shares IOMMU group 20 with VF"));
    EXPECT_EQ(refusal_of(view, ask_external({})), "") << "root opens every group anyway";
}

TEST(PlanExternal, NothingIsVerified) {
    auto spec = ask_external();
    spec.verify = VerifyMode::required;
    EXPECT_THAT(refusal_of(host(), spec), HasSubstr("qm-104 is no VM of libvirt"));
    spec.verify.reset();
    spec.verify_every_seconds = 60;
    EXPECT_THAT(refusal_of(host(), spec), HasSubstr("prove RDMA"));
}

TEST(PlanExternal, ASetHasOneHolder) {
    auto const plan_two = [](AttachmentSpec const& second) {
        return plan_attachments(host(), desired(), {"aaaa0001", "aaaa0002"},
                                {ask_external(), second}, "seed");
    };
    auto const both = plan_two(ask_external());
    ASSERT_TRUE(both);
    EXPECT_EQ(steps_of<BindVfs>(both->plan),
              (std::vector<BindVfs>{{pf_address, {0, 1}, "vfio-pci"}}));
    EXPECT_EQ(steps_of<AttachExternal>(both->plan).size(), 2U);
    auto other = ask_external();
    other.holder->name = "qm-105";
    EXPECT_FALSE(plan_two(other));
    EXPECT_FALSE(plan_two(ask_external(7)));
    EXPECT_FALSE(plan_two(ask("vm1")));
}

TEST(PlanExternal, DetachRestoresTheOwnerBeforeTheReset) {
    HasVf0 attached;
    auto const steps = attached.detach();
    ASSERT_GE(steps.size(), 2U);
    EXPECT_EQ(steps[0], Step(DetachExternal{vf0, "qm-104", 107}));
    EXPECT_EQ(steps[1], Step(ResetVf{vf0}));
    attached.attachment().node_owner.reset();
    EXPECT_EQ(attached.detach()[0], Step(DetachExternal{vf0, "qm-104", 0}));
    attached.attachment().holder->uid.reset();
    EXPECT_EQ(attached.detach()[0], Step(DetachExternal{vf0, "qm-104", {}}));
}

TEST(PlanExternal, DetachNamesWhoHoldsTheVf) {
    HasVf0 attached;
    attached.hold();
    auto const plan = plan_detach(attached.view, attached.goal, attached.attachment());
    ASSERT_TRUE(plan) << "it is begun, and ends in state detaching";
    ASSERT_EQ(plan->notes.size(), 1U);
    EXPECT_THAT(plan->notes[0], HasSubstr("qemu-system-x86 (pid 812)"));
}

TEST(PlanExternal, NothingIsTakenFromAVfThatIsGone) {
    HasVf0 attached;
    attached.view.kernel.pfs[pf_address].vfs.erase(
        attached.view.kernel.pfs[pf_address].vfs.begin());
    for (auto const& step : attached.detach()) EXPECT_FALSE(as<DetachExternal>(step));
}

TEST(PlanExternal, ABootBindsItAgainAndThenGivesTheNodes) {
    HasVf0 attached;
    attached.vf_state() = vf(0);
    auto const steps = plan_restore(attached.view, attached.goal, pf_address).value().steps;
    auto const bound = std::ranges::find(steps, Step(BindVfs{pf_address, {0}, "vfio-pci"}));
    ASSERT_NE(bound, steps.end());
    ASSERT_NE(std::next(bound), steps.end());
    EXPECT_EQ(*std::next(bound), Step(AttachExternal{vf0, "qm-104", holders_uid}));
}

TEST(PlanExternal, ABootThatWasCutShortGivesTheNodes) {
    EXPECT_EQ(HasVf0(0).restore(), (std::vector<AttachExternal>{{vf0, "qm-104", holders_uid}}));
    EXPECT_THAT(HasVf0(holders_uid).restore(), IsEmpty());
    HasVf0 held(0);
    held.hold();
    EXPECT_THAT(held.restore(), IsEmpty()) << "who holds it has opened it already";
}

TEST(PlanExternal, ABootGivesNothingThatIsDetaching) {
    HasVf0 attached;
    attached.vf_state() = vf(0);
    attached.attachment().state = AttachmentState::detaching;
    EXPECT_THAT(attached.restore(), IsEmpty());
    EXPECT_THAT(steps_of<BindVfs>(plan_restore(attached.view, attached.goal, pf_address).value()),
                IsEmpty());
}

TEST(PlanExternal, NodesOfAnotherUserAreDriftThatIsRepaired) {
    HasVf0 attached(0);
    auto& spec = attached.goal.pfs.at(pf_address).spec;
    spec.mode = PfMode::enforce;
    auto const owners = [&] {
        auto drift = find_drift(attached.view, attached.goal);
        std::erase_if(drift, [](Drift const& one) { return one.what != "owner"; });
        return drift;
    };
    auto const repairs = [&] {
        return steps_of<AttachExternal>(
            plan_repair(attached.view, attached.goal, pf_address).value());
    };
    ASSERT_EQ(owners().size(), 1U);
    EXPECT_THAT(owners()[0].sentence, HasSubstr("of user 0 instead of 64055"));
    EXPECT_EQ(repairs(), (std::vector<AttachExternal>{{vf0, "qm-104", holders_uid}}));
    attached.hold();
    EXPECT_THAT(owners(), IsEmpty());
    EXPECT_THAT(repairs(), IsEmpty());
    attached.vf_state() = vf(0);
    EXPECT_EQ(repairs(), (std::vector<AttachExternal>{{vf0, "qm-104", holders_uid}}))
        << "another program has unbound it";
}

// libvirt's attachments are detaching for as long as the detach runs; these may stay so.
TEST(PlanExternal, TheHostStaysClosedWhileItIsDetaching) {
    HasVf0 attached;
    auto const closes = [&] {
        return plan_closing(attached.view, attached.goal, pf_address).value().steps.size();
    };
    auto& interfaces = attached.view.kernel.pfs[pf_address].interfaces;
    HostInterface vlan;
    vlan.id = {pf_address, 100};
    vlan.up = vlan.ours = true;
    vlan.addresses = {ip("192.168.100.3")};
    interfaces.push_back(vlan);
    auto const while_attached = closes();
    ASSERT_GT(while_attached, 0U);
    attached.attachment().state = AttachmentState::detaching;
    EXPECT_EQ(closes(), while_attached);
}

TEST(PlanExternal, AChangeInterruptsWhoeverHoldsTheVf) {
    HasVf0 attached;
    AttachmentPatch patch;
    patch.settings.set.mac = mac(9);
    auto const changed = [&] {
        return plan_change(attached.view, attached.goal, attached.attachment(), patch, "seed");
    };
    ASSERT_TRUE(changed()) << changed().error().detail;
    EXPECT_EQ(changed()->attachment.settings.mac, mac(9));
    attached.hold();
    EXPECT_FALSE(changed()) << "igb resets a VF whose MAC changes";
    patch.allow_reset = true;
    EXPECT_TRUE(changed());
}

std::vector<Step> ended_and_reset(DetachExternal const& end) {
    return {end, ResetVf{vf0}, SetPciValues{pf_address, {}, {}, {{0, "flr bus"}}}};
}

TEST(PlanExternal, TheUndoRestoresTheOwner) {
    HasVf0 const attached(107);
    EXPECT_EQ(inverse(AttachExternal{vf0, "qm-104", holders_uid}, attached.view),
              ended_and_reset({vf0, "qm-104", 107}));
    EXPECT_EQ(inverse(AttachExternal{vf0, "qm-104", {}}, attached.view),
              ended_and_reset({vf0, "qm-104", {}}));
    EXPECT_EQ(inverse(DetachExternal{vf0, "qm-104", 0}, attached.view),
              (std::vector<Step>{AttachExternal{vf0, "qm-104", 107}}));
    EXPECT_EQ(inverse(AttachExternal{vf0, "qm-104", holders_uid}, host()),
              ended_and_reset({vf0, "qm-104", {}}))
        << "it had no nodes yet";
}

TEST(PlanExternal, ReleasedIsWhatIsDetachingAndHeldByNobody) {
    HasVf0 attached;
    EXPECT_THAT(released(attached.view, attached.goal), IsEmpty());
    attached.attachment().state = AttachmentState::detaching;
    EXPECT_EQ(released(attached.view, attached.goal), std::vector<std::string>{"aaaa0001"});
    attached.hold();
    EXPECT_THAT(released(attached.view, attached.goal), IsEmpty());
    attached.vf_state().holders.clear();
    attached.view.kernel.pfs[pf_address].stale = true;
    EXPECT_THAT(released(attached.view, attached.goal), IsEmpty()) << "its holders are not known";
}

TEST(PlanExternal, TheAnswerSaysHowToOpenTheVf) {
    HasVf0 attached;
    auto const access = with_access(attached.attachment(), attached.view).access.value();
    EXPECT_EQ(access.group, "/dev/vfio/20");
    EXPECT_EQ(access.qemu, "-device vfio-pci,host=0000:01:10.0");
    attached.vf_state().vfio.reset();
    EXPECT_EQ(with_access(attached.attachment(), attached.view).access->group, std::nullopt);
    auto const libvirts = with_attachment(desired(), host(), "aaaa0002", ask());
    EXPECT_FALSE(with_access(libvirts.attachments.at("aaaa0002"), attached.view).access);
}

TEST(PlanExternal, SentencesNameTheHolder) {
    EXPECT_EQ(sentence(AttachExternal{vf0, "qm-104", holders_uid}),
              "attach VF 0 of 0000:01:00.0 to qm-104, which libvirt does not run: user 64055 owns "
              "its VFIO nodes");
    EXPECT_EQ(sentence(DetachExternal{vf0, "qm-104", {}}),
              "detach VF 0 of 0000:01:00.0 from qm-104, which libvirt does not run");
}

}  // namespace
}  // namespace vfmgr
