// SPDX-License-Identifier: Apache-2.0
// What somebody plugged in by hand becomes an attachment as it is, or is refused in one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

VfId const by_hand{pf_address, 3};

VfSpec set_by_hand() {
    auto settings = vf(3).settings;
    settings.mac = mac(0x33);
    settings.vlan = Vlan{100};
    return settings;
}

// vm1 runs with VF 3, by managed='yes' in both XMLs.
HostView plugged_by_hand() {
    auto view = host();
    auto& state = view.kernel.pfs[pf_address].vfs[3];
    state.settings = set_by_hand();
    state.driver = "vfio-pci";
    state.holders = {{4001, "qemu-system-x86"}};
    auto& has = view.hypervisor.vms[vm1_uuid];
    has.live = {{state.pci, "hostdev0", {}, true}};
    has.config = {{state.pci, {}, {}, true}};
    return view;
}

AttachmentSpec adopting(std::optional<std::string> network = "train") {
    AttachmentSpec spec;
    spec.vm = "vm1";
    spec.adopt = vf(3).pci;
    spec.network = std::move(network);
    return spec;
}

Error refusal(HostView const& view, AttachmentSpec const& spec = adopting(),
              DesiredState const& goal = desired()) {
    auto const planned = plan(view, goal, spec);
    EXPECT_FALSE(planned);
    if (planned) return {};
    EXPECT_FALSE(planned.error().remedy.empty());
    return planned.error();
}

TEST(PlanAdoption, RecordsItAndUnplugsNothing) {
    auto const [attachment, base, made] = plan(plugged_by_hand(), desired(), adopting()).value();
    EXPECT_EQ(attachment.vf, by_hand);
    EXPECT_EQ(attachment.vm_uuid, vm1_uuid);
    EXPECT_TRUE(attachment.live && attachment.config);
    EXPECT_EQ(attachment.driver, "vfio-pci");
    EXPECT_EQ(attachment.settings.mac, mac(0x33));
    EXPECT_EQ(attachment.settings.vlan, Vlan{100});
    EXPECT_EQ(attachment.settings.spoofchk, true);
    EXPECT_FALSE(attachment.settings.max_tx_rate_mbps) << "nobody limited it";
    EXPECT_TRUE(empty(attachment.baseline));
    EXPECT_THAT(steps_of<MarkHostdev>(made),
                ElementsAre(MarkHostdev{vm1_uuid, "aaaa0001", by_hand, vf(3).pci, true,
                                        "ua-vfmgr-aaaa0001", false, "vm1"}));
    EXPECT_THAT(steps_of<BindVfs>(made), IsEmpty());
    EXPECT_THAT(steps_of<ConfigureVfs>(made), IsEmpty());
    EXPECT_THAT(steps_of<AttachHostdev>(made), IsEmpty());
    EXPECT_THAT(steps_of<AddPeer>(made).at(0).mac, mac(0x33));
    EXPECT_THAT(made.notes, Contains(HasSubstr("nothing is unplugged")));
    EXPECT_THAT(made.notes, Contains(HasSubstr("managed='yes'")));
}

TEST(PlanAdoption, OfAVmThatIsOffIsBoundToVfio) {
    auto view = plugged_by_hand();
    auto& state = view.kernel.pfs[pf_address].vfs[3];
    state.holders.clear();
    state.driver = "igbvf";
    auto& off = view.hypervisor.vms[vm1_uuid];
    off.state = VmState::shut_off;
    off.live.clear();
    auto const planned = plan(view, desired(), adopting()).value();
    EXPECT_FALSE(planned.attachment.live);
    EXPECT_THAT(steps_of<BindVfs>(planned.plan),
                ElementsAre(BindVfs{pf_address, {3}, {}}, BindVfs{pf_address, {3}, "vfio-pci"}));
    state.holders = {{812, "dpdk"}};
    EXPECT_THAT(refusal(view).detail, HasSubstr("held open by dpdk (pid 812)"));
}

TEST(PlanAdoption, OfATransientVmIsRecordedAlone) {
    auto view = plugged_by_hand();
    view.hypervisor.vms[vm1_uuid].persistent = false;
    view.hypervisor.vms[vm1_uuid].config.clear();
    auto const planned = plan(view, desired(), adopting()).value();
    EXPECT_FALSE(steps_of<MarkHostdev>(planned.plan).at(0).config);
    EXPECT_FALSE(planned.attachment.config);
}

TEST(PlanAdoption, WaitsForTheProofThatIsRequired) {
    auto spec = adopting();
    spec.verify = VerifyMode::required;
    auto const planned = plan(plugged_by_hand(), desired(), spec).value();
    EXPECT_TRUE(as<AwaitVerification>(planned.plan.steps.back()));
}

TEST(PlanAdoption, RefusesWhatTheVmDoesNotHave) {
    auto spec = adopting();
    spec.vm = "vm9";
    EXPECT_EQ(refusal(plugged_by_hand(), spec).problem, Problem::not_found);
    spec = adopting();
    spec.adopt = vf(4).pci;
    EXPECT_THAT(refusal(plugged_by_hand(), spec).detail, HasSubstr("it has 0000:01:10.3"));
    EXPECT_THAT(refusal(host()).detail, HasSubstr("it has none"));
}

TEST(PlanAdoption, RefusesAnInterfaceOfLibvirts) {
    auto view = plugged_by_hand();
    view.hypervisor.vms[vm1_uuid].interfaces = {{mac(0x33), "hostdev", vf(3).pci}};
    EXPECT_THAT(refusal(view).detail, HasSubstr("<interface type='hostdev'>"));
}

TEST(PlanAdoption, RefusesWhatIsNoVf) {
    auto view = plugged_by_hand();
    auto spec = adopting();
    spec.adopt = PciAddress{0, 9, 0, 0};
    view.hypervisor.vms[vm1_uuid].live.push_back({*spec.adopt, "hostdev1"});
    EXPECT_THAT(refusal(view, spec).detail, HasSubstr("0000:09:00.0 is no VF"));
}

TEST(PlanAdoption, RefusesAVfOfAPfThatIsOnlyObserved) {
    auto goal = desired();
    goal.pfs[pf_address].spec.mode = PfMode::observe;
    EXPECT_THAT(refusal(plugged_by_hand(), adopting({}), goal).detail,
                HasSubstr("is only observed"));
    goal.pfs.clear();
    EXPECT_THAT(refusal(plugged_by_hand(), adopting({}), goal).remedy, HasSubstr("--mode manage"));
}

TEST(PlanAdoption, RefusesWhatIsAttachedReservedOrInQuarantine) {
    auto goal = with_attachment(desired(), plugged_by_hand(), "bbbb0001", adopting());
    EXPECT_THAT(refusal(plugged_by_hand(), adopting(), goal).detail, HasSubstr("vfmgr's already"));
    Attachment const was = goal.attachments.at("bbbb0001");
    goal = desired();
    goal.quarantine[by_hand] = {by_hand, was, "not clean", {}, {}};
    EXPECT_THAT(refusal(plugged_by_hand(), adopting(), goal).detail, HasSubstr("in quarantine"));
    goal = desired();
    goal.reservations["job"].vfs = {by_hand};
    EXPECT_THAT(refusal(plugged_by_hand(), adopting(), goal).detail,
                HasSubstr("reservation job keeps"));
}

TEST(PlanAdoption, RefusesWhatAnotherVmNames) {
    auto view = plugged_by_hand();
    view.hypervisor.vms[vm2_uuid].config = {{vf(3).pci, {}, {}, true}};
    auto const error = refusal(view);
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("in the XML of VM vm2"));
}

TEST(PlanAdoption, RefusesANetworkThatTheVfIsNotIn) {
    EXPECT_THAT(refusal(plugged_by_hand(), adopting("plain")).detail,
                HasSubstr("has VLAN 100, and network plain is untagged"));
    auto view = plugged_by_hand();
    view.kernel.pfs[pf_address].vfs[3].settings.vlan.reset();
    EXPECT_THAT(refusal(view).remedy, HasSubstr("ip link set enp1s0 vf 3 vlan 100"));
}

TEST(PlanAdoption, ANetworkNeedsAMacOfTheHosts) {
    auto view = plugged_by_hand();
    view.kernel.pfs[pf_address].vfs[3].settings.mac = MacAddress{};
    EXPECT_THAT(refusal(view).detail, HasSubstr("has no MAC of the host's"));
    EXPECT_THAT(refusal(view).remedy, HasSubstr("ip link set enp1s0 vf 3 mac MAC"));
    auto const planned = plan(view, desired(), adopting({})).value();
    EXPECT_FALSE(planned.attachment.settings.mac) << "the VM chooses its own";
    EXPECT_THAT(planned.plan.notes, Contains(HasSubstr("the VM chooses its own")));
}

TEST(PlanAdoption, RefusesAMacThatSomebodyHas) {
    auto view = plugged_by_hand();
    view.kernel.pfs[pf_address].vfs[5].settings.mac = mac(0x33);
    auto const error = refusal(view, adopting({}));
    EXPECT_THAT(error.detail, HasSubstr("VF 5 of enp1s0"));
    EXPECT_THAT(error.remedy, HasSubstr("ip link set enp1s0 vf 3 mac"));
}

TEST(PlanAdoption, AHostThatIsClosedByMacNeedsTheSpoofCheck) {
    auto view = plugged_by_hand();
    auto& settings = view.kernel.pfs[pf_address].vfs[3].settings;
    settings.vlan = Vlan{};
    EXPECT_TRUE(plan(view, desired(), adopting("plain")));
    settings.spoofchk = false;
    EXPECT_THAT(refusal(view, adopting("plain")).remedy, HasSubstr("spoofchk on"));
}

TEST(PlanAdoption, TakesUpTheIdThatTheDeviceIsNamedAfter) {
    auto view = plugged_by_hand();
    EXPECT_EQ(id_of_adopted(view, desired(), adopting()), std::nullopt);
    view.hypervisor.vms[vm1_uuid].live[0].alias = "ua-vfmgr-3f9c2b1d";
    EXPECT_EQ(id_of_adopted(view, desired(), adopting()), "3f9c2b1d");
    auto const other = with_attachment(desired(), host(), "3f9c2b1d", ask("vm2"));
    EXPECT_EQ(id_of_adopted(view, other, adopting()), std::nullopt) << "it is another's";
    EXPECT_EQ(id_of_adopted(view, desired(), ask()), std::nullopt);
}

TEST(PlanAdoption, WhatGoesWithADeviceOfOursWasNotThereBefore) {
    auto view = plugged_by_hand();
    auto& untagged = view.kernel.pfs[pf_address].interfaces.at(0);
    untagged.addresses = {ip("192.168.50.1"), ip("10.0.0.1")};
    view.kernel.pfs[pf_address].info.rdma_device = "vfmgr_enp1s0";
    view.kernel.pfs[pf_address].info.rdma_driver = "rxe";
    auto const base = [&] { return plan(view, desired(), adopting())->base; };
    EXPECT_EQ(base().addresses.size(), 2U);
    EXPECT_TRUE(base().rdma);
    view.hypervisor.vms[vm1_uuid].config[0].alias = "ua-vfmgr-3f9c2b1d";
    EXPECT_THAT(base().addresses, ElementsAre(ip("10.0.0.1")));
    EXPECT_FALSE(base().rdma);
}

// Its baseline is not known: it gets what a VF has that was just made.
TEST(PlanAdoption, TheDetachUnbindsItFirstAndCleansAll) {
    auto const view = plugged_by_hand();
    auto const goal = with_attachment(desired(), view, "aaaa0001", adopting());
    auto const made = plan_detach(view, goal, goal.attachments.at("aaaa0001")).value();
    EXPECT_EQ(steps_of<DetachHostdev>(made).at(0).by_address, true);
    EXPECT_THAT(steps_of<BindVfs>(made), ElementsAre(BindVfs{pf_address, {3}, {}}));
    auto const change = steps_of<ConfigureVfs>(made).at(0).changes.at(0).settings;
    EXPECT_EQ(change.mac, MacAddress{});
    EXPECT_EQ(change.vlan, Vlan{});
    EXPECT_FALSE(change.spoofchk) << "it is on already";
    auto const unbind = std::ranges::find_if(
        made.steps, [](auto const& step) { return as<BindVfs>(step) != nullptr; });
    EXPECT_TRUE(as<ResetVf>(*std::next(unbind)));
}

TEST(PlanAdoption, TheUndoGivesTheDeviceItsNameBack) {
    MarkHostdev const step{vm1_uuid, "aaaa0001",          by_hand, vf(3).pci,
                           true,     "ua-vfmgr-aaaa0001", false,   "vm1"};
    auto view = plugged_by_hand();
    auto back = step;
    back.alias.reset();
    back.managed = true;
    EXPECT_THAT(inverse(step, view), ElementsAre(Step(back)));
    view.hypervisor.vms[vm1_uuid].config[0] = {vf(3).pci, step.alias, {}, false};
    EXPECT_THAT(inverse(step, view), IsEmpty());
    EXPECT_THAT(sentence(back), HasSubstr("as what it was before attachment aaaa0001"));
    EXPECT_THAT(sentence(step), Not(HasSubstr("before")));
}

// libvirt bound it to the host's driver when the VM stopped.
TEST(PlanAdoption, IsBoundAgainWhileTheVmIsOff) {
    auto view = plugged_by_hand();
    auto const goal = with_attachment(desired(), view, "aaaa0001", adopting());
    EXPECT_THAT(plan_rebinding(view, goal, pf_address)->steps, IsEmpty());
    auto& state = view.kernel.pfs[pf_address].vfs[3];
    state.driver = "igbvf";
    EXPECT_THAT(plan_rebinding(view, goal, pf_address)->steps, IsEmpty()) << "vm1 is stopping";
    state.holders.clear();
    view.hypervisor.vms[vm1_uuid].state = VmState::shut_off;
    view.hypervisor.vms[vm1_uuid].live.clear();
    EXPECT_THAT(plan_rebinding(view, goal, pf_address)->steps,
                ElementsAre(Step(BindVfs{pf_address, {3}, {}}),
                            Step(BindVfs{pf_address, {3}, "vfio-pci"})));
    auto attached = with_attachment(desired(), host(), "aaaa0002", ask());
    attached.attachments.at("aaaa0002").vf = by_hand;
    EXPECT_THAT(plan_rebinding(view, attached, pf_address)->steps, IsEmpty())
        << "what was attached is an admin's to judge";
}

}  // namespace
}  // namespace vfmgr
