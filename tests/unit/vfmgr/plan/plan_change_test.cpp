// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto id = "aaaa0001";

// An attachment in place, on the host as it then is.
struct Changeable {
    HostView host = example::host();
    DesiredState desired;

    explicit Changeable(AttachmentSpec const& spec = without_network()) {
        desired = with_attachment(example::desired(), host, id, spec);
        auto const& attachment = now();
        auto& pf = host.kernel.pfs[pf_address];
        auto& vf = pf.vfs[attachment.vf.index];
        vf.driver = attachment.driver;
        vf.settings = overlay(vf.settings, attachment.settings);
        auto& vm = host.hypervisor.vms[vm1_uuid];
        vm.live = vm.config = {{attachment.vf_pci, hostdev_alias(id)}};
        pf.info.up = true;
    }
    static AttachmentSpec without_network() {
        auto spec = ask();
        spec.network.reset();
        spec.settings.vlan = Vlan{7, 3};
        return spec;
    }
    [[nodiscard]] Attachment const& now() const { return desired.attachments.at(id); }
    Attachment& now() { return desired.attachments.at(id); }
    PfState& pf() { return host.kernel.pfs[pf_address]; }
    [[nodiscard]] Result<AttachmentPlan> plan(AttachmentPatch const& patch) const {
        return plan_change(host, desired, now(), patch, "seed");
    }
    [[nodiscard]] Result<AttachmentPlan> plan(VfSpec const& set) const {
        return plan(AttachmentPatch{{set, {}, {}}, {}, {}, {}, {}});
    }
    [[nodiscard]] Error refusal(AttachmentPatch const& patch) const {
        auto const planned = plan(patch);
        return planned ? Error{} : planned.error();
    }
};

template <auto Member, class T>
VfSpec with(T value) {
    VfSpec settings;
    settings.*Member = value;
    return settings;
}

AttachmentPatch patch_of(VfSpec const& set) {
    return {{set, {}, {}}, {}, {}, {}, {}};
}

AttachmentPatch without(VfAttribute attribute) {
    return {{{}, {}, {attribute}}, {}, {}, {}, {}};
}

TEST(PlanChange, WritesWhatChangesAndNothingElse) {
    Changeable const attached;
    auto const planned = attached.plan(with<&VfSpec::trust>(true)).value();
    EXPECT_THAT(planned.plan.steps,
                ElementsAre(Step{ConfigureVfs{pf_address, {{0, with<&VfSpec::trust>(true)}}, {}}}));
    EXPECT_THAT(planned.plan.blast_radius, IsEmpty());
    EXPECT_EQ(planned.attachment.settings.trust, true);
    EXPECT_EQ(planned.attachment.spec.settings.trust, true);
    EXPECT_EQ(planned.attachment.settings.vlan, (Vlan{7, 3}));
    EXPECT_EQ(planned.attachment.settings.mac, attached.now().settings.mac);
    EXPECT_EQ(planned.attachment.baseline.trust, false) << "what the VF has before, for the detach";
    EXPECT_EQ(planned.attachment.baseline.vlan, Vlan{});
}

TEST(PlanChange, ThatChangesNothingPlansNothing) {
    Changeable attached;
    attached.now().verification.emplace();
    auto const planned = attached.plan(with<&VfSpec::mac>(*attached.now().settings.mac)).value();
    EXPECT_THAT(planned.plan.steps, IsEmpty());
    auto const same = attached.plan(AttachmentPatch{}).value();
    EXPECT_EQ(same.attachment, attached.now());
    EXPECT_THAT(same.plan.steps, IsEmpty());
}

TEST(PlanChange, AnEarlierVerdictIsNoneOfTheNewSettings) {
    Changeable attached;
    attached.now().verification.emplace();
    EXPECT_FALSE(attached.plan(with<&VfSpec::trust>(true))->attachment.verification);
    AttachmentPatch only_stored;
    only_stored.best_effort = {"trust"};
    auto const planned = attached.plan(only_stored).value();
    EXPECT_THAT(planned.plan.steps, IsEmpty());
    EXPECT_NE(planned.attachment, attached.now());
    EXPECT_TRUE(planned.attachment.verification);
}

TEST(PlanChange, MergesAVlan) {
    Changeable const attached;
    AttachmentPatch patch;
    patch.settings.vlan = VlanPatch{8, {}, {}};
    EXPECT_EQ(attached.plan(patch)->attachment.settings.vlan, (Vlan{8, 3}));
    patch.settings.vlan = VlanPatch{{}, 0, {}};
    EXPECT_EQ(attached.plan(patch)->attachment.settings.vlan, (Vlan{7, 0}));
}

TEST(PlanChange, AVlanWithoutAnIdNeedsOne) {
    auto spec = Changeable::without_network();
    spec.settings.vlan.reset();
    AttachmentPatch patch;
    patch.settings.vlan = VlanPatch{{}, 3, {}};
    auto const error = Changeable(spec).refusal(patch);
    EXPECT_EQ(http_status(error), 422);
    ASSERT_EQ(error.violations.size(), 1U);
    EXPECT_EQ(error.violations[0].pointer, "/settings/vlan/id");
}

TEST(PlanChange, WhatIsTakenAwayReturnsToWhatTheVfHad) {
    Changeable const attached;
    auto const planned = attached.plan(without(VfAttribute::vlan)).value();
    EXPECT_THAT(
        planned.plan.steps,
        ElementsAre(Step{ConfigureVfs{pf_address, {{0, with<&VfSpec::vlan>(Vlan{})}}, {}}}));
    EXPECT_FALSE(planned.attachment.settings.vlan);
    EXPECT_FALSE(planned.attachment.baseline.vlan);
}

TEST(PlanChange, WhatTheVfHadMayNotBeKnown) {
    Changeable attached;
    attached.now().spec.settings.link_state = attached.now().settings.link_state =
        LinkState::enable;
    auto const planned = attached.plan(without(VfAttribute::link_state)).value();
    EXPECT_THAT(planned.plan.steps, IsEmpty());
    EXPECT_THAT(planned.plan.notes, ElementsAre(HasSubstr("link_state stays as it is")));
}

TEST(PlanChange, AMacThatIsTakenAwayIsChosen) {
    auto spec = Changeable::without_network();
    spec.settings.mac = mac(9);
    Changeable attached(spec);
    auto patch = without(VfAttribute::mac);
    patch.allow_reset = true;
    auto const planned = attached.plan(patch).value();
    EXPECT_NE(planned.attachment.settings.mac, mac(9));
    EXPECT_THAT(planned.plan.notes, ElementsAre(HasSubstr("was chosen")));
    // One that was chosen stays.
    Changeable const chosen;
    EXPECT_THAT(chosen.plan(without(VfAttribute::mac))->plan.steps, IsEmpty());
}

TEST(PlanChange, RatesAreJudgedTogether) {
    auto spec = Changeable::without_network();
    spec.settings.max_tx_rate_mbps = 100;
    auto const error = Changeable(spec).refusal(patch_of(with<&VfSpec::min_tx_rate_mbps>(200U)));
    EXPECT_EQ(error.violations.at(0).pointer, "/settings/min_tx_rate_mbps");
    EXPECT_TRUE(Changeable(spec).plan(with<&VfSpec::max_tx_rate_mbps>(0U)));
}

TEST(PlanChange, TheNetworkDecidesTheVlan) {
    Changeable const attached(ask());
    AttachmentPatch patch;
    patch.settings.vlan = VlanPatch{200, {}, {}};
    auto const error = attached.refusal(patch);
    EXPECT_EQ(error.problem, Problem::conflict);
    EXPECT_THAT(error.detail, HasSubstr("VLAN 200 was requested, but network train is VLAN 100"));
    EXPECT_THAT(attached.plan(without(VfAttribute::vlan))->plan.steps, IsEmpty());
}

TEST(PlanChange, ThePeerFollowsTheMac) {
    Changeable const attached(ask());
    auto patch = patch_of(with<&VfSpec::mac>(mac(9)));
    patch.allow_reset = true;
    auto const planned = attached.plan(patch).value();
    auto const peers = steps_of<AddPeer>(planned.plan);
    ASSERT_FALSE(peers.empty());
    EXPECT_EQ(peers[0].mac, mac(9));
    EXPECT_EQ(steps_of<ConfigureVfs>(planned.plan).at(0).changes.at(0).settings,
              with<&VfSpec::mac>(mac(9)));
}

TEST(PlanChange, AMacThatTheHostIsClosedByStays) {
    auto spec = ask();
    spec.network = "plain";
    Changeable const attached(spec);
    auto patch = patch_of(with<&VfSpec::mac>(mac(9)));
    patch.allow_reset = true;
    EXPECT_EQ(attached.refusal(patch).problem, Problem::conflict);
    EXPECT_THAT(attached.refusal(patch).remedy, HasSubstr("attach it again"));
    EXPECT_THAT(attached.refusal(patch_of(with<&VfSpec::trust>(true))).detail,
                HasSubstr("closed to VM vm1 by its MAC"));
}

// An attach decided more than the request names: the VF was trusted by somebody before.
TEST(PlanChange, WhatTheAttachDecidedStays) {
    auto spec = ask();
    spec.network = "plain";
    auto view = host();
    for (auto& vf : view.kernel.pfs[pf_address].vfs) vf.settings.trust = true;
    auto const at_attach = plan(view, desired(), spec)->attachment;
    ASSERT_EQ(at_attach.settings.trust, false);
    Changeable attached(spec);
    attached.now().settings = at_attach.settings;
    attached.now().baseline = at_attach.baseline;
    EXPECT_EQ(attached.plan(AttachmentPatch{})->attachment, attached.now());
    auto const planned = attached.plan(with<&VfSpec::max_tx_rate_mbps>(100U)).value();
    EXPECT_EQ(planned.attachment.settings.trust, false);
    EXPECT_EQ(planned.attachment.baseline.trust, true);
}

TEST(PlanChange, AMacOfAnotherIsRefused) {
    Changeable attached;
    attached.pf().vfs[5].settings.mac = mac(7);
    auto patch = patch_of(with<&VfSpec::mac>(mac(7)));
    patch.allow_reset = true;
    EXPECT_THAT(attached.refusal(patch).detail, HasSubstr("already used by VF 5 of enp1s0"));
}

// --- what the VM notices --------------------------------------------------------------------

TEST(PlanChange, AResetOfTheVfNeedsConsent) {
    Changeable attached;
    attached.pf().info.driver = "i40e";
    AttachmentPatch patch = patch_of(with<&VfSpec::trust>(true));
    patch.settings.vlan = VlanPatch{8, {}, {}};
    auto const error = attached.refusal(patch);
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_EQ(
        error.detail,
        "i40e resets VF 0 of enp1s0 when its vlan and trust change: VM vm1 loses its link for "
        "a moment");
    EXPECT_THAT(error.remedy, HasSubstr("--allow-reset"));
    ASSERT_TRUE(error.discreet);
    EXPECT_THAT(error.discreet->detail, testing::Not(HasSubstr("enp1s0")));
    patch.allow_reset = true;
    auto const planned = attached.plan(patch).value();
    EXPECT_THAT(planned.plan.blast_radius, ElementsAre(error.detail));
    EXPECT_EQ(planned.plan.steps.size(), 1U);
}

TEST(PlanChange, NothingIsResetInAVmThatIsShutOff) {
    Changeable attached;
    attached.pf().info.driver = "ice";
    auto& vm = attached.host.hypervisor.vms[vm1_uuid];
    vm.state = VmState::shut_off;
    vm.live.clear();
    auto const planned = attached.plan(with<&VfSpec::trust>(true)).value();
    EXPECT_THAT(planned.plan.blast_radius, IsEmpty());
}

TEST(PlanChange, ANewMacThatWaitsForTheVmsDriverNeedsConsent) {
    for (auto const* driver : {"igb", "ixgbe", "mlx5_core"}) {
        Changeable attached;
        attached.pf().info.driver = driver;
        auto const error = attached.refusal(patch_of(with<&VfSpec::mac>(mac(9))));
        EXPECT_EQ(error.problem, Problem::vf_in_use) << driver;
        EXPECT_THAT(error.detail, HasSubstr("when its driver of the VF is loaded again"));
    }
    Changeable other;
    other.pf().info.driver = "bnxt_en";
    EXPECT_TRUE(other.plan(with<&VfSpec::mac>(mac(9))));
}

// --- the guard ------------------------------------------------------------------------------

TEST(PlanChange, RefusesAVfThatTheVmHasNoLonger) {
    auto const trust = patch_of(with<&VfSpec::trust>(true));
    Changeable lost;
    lost.host.hypervisor.vms[vm1_uuid].live.clear();
    EXPECT_THAT(lost.refusal(trust).detail, HasSubstr("the running VM lacks the device"));
    EXPECT_THAT(lost.refusal(trust).remedy, HasSubstr("vfctl detach aaaa0001"));
    Changeable other;
    other.host.hypervisor.vms[vm2_uuid].live = {{other.now().vf_pci, "hostdev0"}};
    EXPECT_THAT(other.refusal(trust).detail, HasSubstr("VM vm2 has the device"));
    Changeable unbound;
    unbound.pf().vfs[0].driver.reset();
    EXPECT_THAT(unbound.refusal(trust).detail, HasSubstr("its driver is none, not vfio-pci"));
    Changeable moved;
    moved.pf().vfs[0].pci.function = 7;
    EXPECT_THAT(moved.refusal(trust).detail, HasSubstr("it moved to"));
    Changeable gone;
    gone.pf().vfs.clear();
    EXPECT_THAT(gone.refusal(trust).detail, HasSubstr("the VF is gone"));
    Changeable blind;
    blind.host.hypervisor.stale = true;
    EXPECT_EQ(blind.refusal(trust).problem, Problem::unavailable);
}

TEST(PlanChange, RefusesAnAttachmentInTheMakingAndAPfThatIsOnlyObserved) {
    auto const trust = patch_of(with<&VfSpec::trust>(true));
    Changeable making;
    making.now().state = AttachmentState::attaching;
    EXPECT_EQ(making.refusal(trust).problem, Problem::conflict);
    Changeable observed;
    observed.desired.pfs[pf_address].spec.mode = PfMode::observe;
    EXPECT_THAT(observed.refusal(trust).detail, HasSubstr("only observed"));
}

// --- proof ----------------------------------------------------------------------------------

TEST(PlanChange, ProvesTheNewSettingsIfItIsAsked) {
    Changeable const attached(ask());
    auto patch = patch_of(with<&VfSpec::trust>(true));
    patch.verify = VerifyMode::required;
    patch.verify_timeout_seconds = 30;
    EXPECT_EQ(attached.plan(patch)->plan.steps.back(), Step{(AwaitVerification{id, 30})});
    auto nothing = AttachmentPatch{};
    nothing.verify = VerifyMode::required;
    EXPECT_THAT(attached.plan(nothing)->plan.steps, IsEmpty());
    patch.verify = VerifyMode::required;
    EXPECT_EQ(Changeable().refusal(patch).problem, Problem::unsupported) << "without a network";
}

TEST(PlanChangeBack, RestoresWhatTheAttachmentWas) {
    Changeable attached(ask());
    auto const before = attached.now();
    auto patch = patch_of(with<&VfSpec::trust>(true));
    patch.settings.set.mac = mac(9);
    patch.allow_reset = true;
    attached.now() = attached.plan(patch)->attachment;
    auto& vf = attached.pf().vfs[0];
    vf.settings = overlay(vf.settings, attached.now().settings);
    auto const back =
        plan_change_back(attached.host, attached.desired, attached.now(), before).value();
    VfSpec expected;
    expected.mac = before.settings.mac;
    expected.trust = false;
    EXPECT_EQ(steps_of<ConfigureVfs>(back).at(0).changes.at(0).settings, expected);
}

}  // namespace
}  // namespace vfmgr
