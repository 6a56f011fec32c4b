// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PlanAttachment, BringsUpTheInterfaceThenTheVfThenTheVm) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    auto const planned = plan(host(), desired(), spec).value();
    auto const mac_chosen = *planned.attachment.settings.mac;
    InterfaceId const untagged{pf_address, {}};
    InterfaceId const tagged{pf_address, 100};
    auto const own = ip("192.168.100.3");
    auto const first = ip("192.168.100.1");
    VfSpec settings;
    settings.mac = mac_chosen;
    settings.vlan = Vlan{100};
    EXPECT_EQ(
        planned.plan.steps,
        (std::vector<Step>{
            SetLink{untagged, true, 9000}, AddRdmaLink{pf_address}, AddVlanInterface{tagged},
            SetLink{tagged, true, 9000}, AddAddress{tagged, own},
            AddPeer{tagged, first, mac_chosen, own}, ConfigureVfs{pf_address, {{0, settings}}, {}},
            BindVfs{pf_address, {0}, "vfio-pci"},
            AttachHostdev{
                vm1_uuid, "aaaa0001", {pf_address, 0}, vf(0).pci, mac_chosen, true, true, "vm1"},
            AwaitCarrier{untagged}, AwaitVerification{"aaaa0001", 120}}));
}

TEST(PlanAttachment, ChoosesAStableLocalUnicastMacAndSaysSo) {
    auto const once = plan(host(), desired(), ask()).value();
    auto const again = plan(host(), desired(), ask()).value();
    auto const chosen = *once.attachment.settings.mac;
    EXPECT_EQ(chosen, *again.attachment.settings.mac);
    EXPECT_EQ(chosen.octets[0] & 3, 2);
    EXPECT_THAT(once.plan.notes[0], HasSubstr(to_string(chosen)));
    auto const other = plan(host(), desired(), ask("vm2")).value();
    EXPECT_NE(chosen, *other.attachment.settings.mac);
    EXPECT_NE(
        chosen,
        *plan_attachment(host(), desired(), "x", ask(), "another host")->attachment.settings.mac);
}

TEST(PlanAttachment, CountsOnWhenTheChosenMacIsTaken) {
    auto const first = plan(host(), desired(), ask()).value();
    auto view = host();
    view.kernel.pfs[pf_address].vfs[5].settings.mac = first.attachment.settings.mac;
    EXPECT_NE(*plan(view, desired(), ask())->attachment.settings.mac,
              *first.attachment.settings.mac);
}

TEST(PlanAttachment, RefusesAMacThatSomebodyHas) {
    auto spec = ask();
    spec.settings.mac = mac(7);
    auto view = host();
    view.kernel.pfs[pf_address].vfs[5].settings.mac = mac(7);
    auto error = plan(view, desired(), spec).error();
    EXPECT_EQ(error.problem, Problem::conflict);
    EXPECT_THAT(error.detail, HasSubstr("VF 5 of enp1s0"));
    spec.settings.mac = host().kernel.pfs[pf_address].info.mac;
    EXPECT_THAT(plan(host(), desired(), spec).error().detail,
                HasSubstr("already used by PF enp1s0"));
}

TEST(PlanAttachment, TakesTheFirstFreeVfAndAddress) {
    auto const attached = with_attachment(desired(), host(), "bbbb0001", ask("vm2"));
    auto const planned = plan(host(), attached, ask()).value();
    EXPECT_EQ(planned.attachment.vf.index, 1);
    EXPECT_EQ(*planned.attachment.address, ip("192.168.100.2"));
}

TEST(PlanAttachment, NeverGivesAwayTheHostsAddress) {
    auto attached = with_attachment(desired(), host(), "bbbb0001", ask("vm2"));
    auto second = ask("vm2");
    attached = with_attachment(attached, host(), "bbbb0002", second);
    EXPECT_EQ(*plan(host(), attached, ask())->attachment.address, ip("192.168.100.4"));
}

TEST(PlanAttachment, RefusesAddressesThatCannotBe) {
    auto const attached = with_attachment(desired(), host(), "bbbb0001", ask("vm2"));
    for (auto const* text :
         {"192.168.100.3", "192.168.100.0", "192.168.100.255", "10.0.0.1", "192.168.100.1"}) {
        auto spec = ask();
        spec.address = ip(text);
        EXPECT_EQ(plan(host(), attached, spec).error().problem, Problem::conflict) << text;
    }
}

TEST(PlanAttachment, RefusesAVfThatIsUsed) {
    auto const attached = with_attachment(desired(), host(), "bbbb0001", ask("vm2"));
    auto spec = ask();
    spec.vf = 0;
    auto const error = plan(host(), attached, spec).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("attached to vm2 (attachment bbbb0001)"));
    spec.vf = 9;
    EXPECT_EQ(plan(host(), attached, spec).error().problem, Problem::not_found);
}

TEST(PlanAttachment, RefusesWhenAllAreUsedOrNoneExist) {
    auto view = host(1);
    view.kernel.pfs[pf_address].vfs[0].holders.push_back({7, "qemu"});
    EXPECT_THAT(plan(view, desired(), ask()).error().detail, HasSubstr("all 1 VFs of enp1s0"));
    EXPECT_THAT(plan(host(0), desired(), ask()).error().detail, HasSubstr("enp1s0 has no VFs"));
}

TEST(PlanAttachment, RefusesWithoutAnIommu) {
    auto view = host(1);
    view.kernel.pfs[pf_address].vfs[0].iommu_group.reset();
    auto const error = plan(view, desired(), ask()).error();
    EXPECT_EQ(error.problem, Problem::unsupported);
    EXPECT_THAT(error.remedy, HasSubstr("intel_iommu=on"));
    view.kernel.pfs[pf_address].vfs[0].driver = "igbvf";
    EXPECT_FALSE(plan(view, desired(), ask())) << "whatever driver it has";
}

TEST(PlanAttachment, RefusesAnUnknownVmPfOrNetwork) {
    EXPECT_EQ(plan(host(), desired(), ask("nobody")).error().problem, Problem::not_found);
    auto spec = ask();
    spec.network = "other";
    EXPECT_THAT(plan(host(), desired(), spec).error().remedy, HasSubstr("vfctl network list"));
    spec = ask();
    spec.pf = PciAddress{0, 9, 0, 0};
    EXPECT_EQ(plan(host(), desired(), spec).error().problem, Problem::not_found);
}

TEST(PlanAttachment, RefusesAPfThatIsOnlyObserved) {
    auto unmanaged = desired();
    unmanaged.pfs.clear();
    EXPECT_EQ(plan(host(), unmanaged, ask()).error().problem, Problem::conflict);
}

TEST(PlanAttachment, RefusesAVmWithoutAFreePciePort) {
    auto view = host();
    view.hypervisor.vms[vm1_uuid].free_pcie_ports = 0;
    auto const error = plan(view, desired(), ask()).error();
    EXPECT_EQ(error.problem, Problem::unsupported);
    EXPECT_THAT(error.remedy, HasSubstr("pcie-root-port"));
    auto spec = ask();
    spec.persistence = Persistence::config;
    EXPECT_TRUE(plan(view, desired(), spec)) << "a stopped VM gets a port when it starts";
}

TEST(PlanAttachment, GoesWhereTheVmIs) {
    auto view = host();
    auto& one = view.hypervisor.vms[vm1_uuid];
    one.persistent = false;
    auto planned = plan(view, desired(), ask()).value();
    EXPECT_TRUE(planned.attachment.live);
    EXPECT_FALSE(planned.attachment.config);
    one.persistent = true;
    one.state = VmState::shut_off;
    planned = plan(view, desired(), ask()).value();
    EXPECT_FALSE(planned.attachment.live);
    EXPECT_TRUE(planned.attachment.config);
    auto spec = ask();
    spec.persistence = Persistence::live;
    EXPECT_EQ(plan(view, desired(), spec).error().problem, Problem::unsupported);
}

TEST(PlanAttachment, RefusesAVerificationThatCannotHappen) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    auto view = host();
    view.hypervisor.vms[vm1_uuid].has_vsock = false;
    view.hypervisor.vms[vm1_uuid].vsock_cid.reset();
    EXPECT_THAT(plan(view, desired(), spec).error().remedy, HasSubstr("<vsock"));
    auto scheduled = ask();
    EXPECT_TRUE(plan(view, desired(), scheduled));
    scheduled.verify_every_seconds = 60;
    EXPECT_THAT(plan(view, desired(), scheduled).error().remedy, HasSubstr("<vsock"));
    view = host();
    view.hypervisor.vms[vm1_uuid].state = VmState::shut_off;
    EXPECT_THAT(plan(view, desired(), spec).error().detail, HasSubstr("is not running"));
    auto goal = desired();
    goal.networks["train"].network.rdma = RdmaMode::auto_;
    EXPECT_THAT(plan(host(), goal, spec).error().remedy, HasSubstr("rxe"));
}

TEST(PlanAttachment, TheNetworksVlanIsTheVfs) {
    auto spec = ask();
    spec.settings.vlan = Vlan{200};
    EXPECT_EQ(plan(host(), desired(), spec).error().problem, Problem::conflict);
    spec.settings.vlan = Vlan{100, 5};
    EXPECT_EQ(plan(host(), desired(), spec)->attachment.settings.vlan, (Vlan{100, 5}));
    spec.network = "plain";
    EXPECT_EQ(plan(host(), desired(), spec).error().problem, Problem::conflict);
}

TEST(PlanAttachment, SecondAttachmentSharesTheInterface) {
    auto const attached = with_attachment(desired(), host(), "bbbb0001", ask("vm2"));
    auto view = host();
    auto& pf = view.kernel.pfs[pf_address];
    pf.info.up = true;
    pf.info.mtu = 9000;
    pf.info.rdma_device = "vfmgr_enp1s0";
    pf.info.rdma_driver = "rxe";
    pf.interfaces[0].up = true;
    pf.interfaces[0].mtu = 9000;
    HostInterface tagged;
    tagged.id = {pf_address, 100};
    tagged.ifname = "enp1s0.100";
    tagged.up = true;
    tagged.mtu = 9000;
    tagged.ours = true;
    tagged.addresses = tagged.filtered = {ip("192.168.100.3")};
    auto const attached_mac = attached.attachments.at("bbbb0001").settings.mac;
    tagged.peers = {{ip("192.168.100.1"), attached_mac}};
    tagged.closed = {{ip("192.168.100.1"), attached_mac.value(), ip("192.168.100.3")}};
    pf.interfaces.push_back(tagged);
    auto const planned = plan(view, attached, ask()).value();
    EXPECT_THAT(steps_of<SetLink>(planned.plan), IsEmpty());
    EXPECT_THAT(steps_of<AddVlanInterface>(planned.plan), IsEmpty());
    EXPECT_THAT(steps_of<AddAddress>(planned.plan), IsEmpty());
    EXPECT_THAT(steps_of<AddRdmaLink>(planned.plan), IsEmpty());
    EXPECT_EQ(steps_of<AddPeer>(planned.plan).size(), 1U);

    // The first one's detach leaves the interface to the second.
    auto both = attached;
    both.attachments["aaaa0001"] = planned.attachment;
    auto const detach = plan_detach(view, both, both.attachments.at("bbbb0001")).value();
    EXPECT_THAT(steps_of<RemoveVlanInterface>(detach), IsEmpty());
    EXPECT_THAT(steps_of<RemoveAddress>(detach), IsEmpty());
    EXPECT_THAT(steps_of<RemoveRdmaLink>(detach), IsEmpty());
    EXPECT_EQ(steps_of<RemovePeer>(detach),
              (std::vector<RemovePeer>{{{pf_address, 100}, ip("192.168.100.1")}}));

    // The last one's detach removes all of it and restores the PF's link.
    auto const last = plan_detach(view, attached, attached.attachments.at("bbbb0001")).value();
    EXPECT_EQ(steps_of<RemoveVlanInterface>(last).size(), 1U);
    EXPECT_EQ(steps_of<RemoveRdmaLink>(last).size(), 1U);
    EXPECT_EQ(steps_of<SetLink>(last), (std::vector<SetLink>{{{pf_address, {}}, false, 1500}}));
}

TEST(PlanAttachment, ClosesAnInterfaceAgainWhoseFilterWasFlushed) {
    auto spec = ask();
    spec.network = "plain";
    auto first = spec;
    first.vm = "vm2";
    auto const attached = with_attachment(desired(), host(), "bbbb0001", first);
    auto view = host();
    auto& interface = view.kernel.pfs[pf_address].interfaces[0];
    interface.addresses = {ip("192.168.50.1")};
    EXPECT_EQ(steps_of<AddAddress>(plan(view, attached, spec)->plan),
              (std::vector<AddAddress>{{{pf_address, {}}, ip("192.168.50.1")}}));
    EXPECT_THAT(steps_of<AddAddress>(plan(view, desired(), spec)->plan), IsEmpty())
        << "there before vfmgr was: others may be served at it";
    interface.filtered = interface.addresses;
    EXPECT_THAT(steps_of<AddAddress>(plan(view, attached, spec)->plan), IsEmpty());
}

// vm1's network is on a VLAN device that an admin made.
HostView with_their_interface(bool up, std::uint32_t mtu) {
    auto view = host();
    auto& interfaces = view.kernel.pfs[pf_address].interfaces;
    interfaces[0].up = view.kernel.pfs[pf_address].info.up = up;
    interfaces[0].mtu = view.kernel.pfs[pf_address].info.mtu = 9000;
    HostInterface theirs;
    theirs.id = {pf_address, 100};
    theirs.ifname = "storage";
    theirs.up = up;
    theirs.mtu = mtu;
    theirs.addresses = {ip("192.168.100.3")};
    interfaces.push_back(theirs);
    return view;
}

TEST(PlanAttachment, LeavesSomebodyElsesVlanDeviceAsItIs) {
    auto const view = with_their_interface(true, 9216);
    auto const attached = with_attachment(desired(), view, "aaaa0001", ask());
    auto const planned = plan(view, desired(), ask()).value();
    EXPECT_THAT(steps_of<SetLink>(planned.plan), IsEmpty());
    EXPECT_EQ(steps_of<AddPeer>(planned.plan).size(), 1U);
    auto const back = plan_detach(view, attached, attached.attachments.at("aaaa0001")).value();
    EXPECT_THAT(steps_of<RemoveAddress>(back), IsEmpty()) << "the address was there before";
    EXPECT_THAT(steps_of<RemoveVlanInterface>(back), IsEmpty());
}

TEST(PlanAttachment, RefusesSomebodyElsesVlanDeviceThatDoesNotSuit) {
    auto const small = plan(with_their_interface(true, 1500), desired(), ask()).error();
    EXPECT_EQ(small.problem, Problem::conflict);
    EXPECT_THAT(small.detail,
                HasSubstr("storage, which vfmgr did not create, is up with MTU 1500"));
    EXPECT_EQ(small.remedy, "ip link set storage up mtu 9000, or remove it: vfmgr creates its own");
    EXPECT_FALSE(plan(with_their_interface(false, 9000), desired(), ask()));
}

// vm1's PF is part of a bond.
HostView bonded(HostView view) {
    auto& pf = view.kernel.pfs[pf_address];
    pf.info.controller = "bond0";
    pf.info.up = pf.interfaces[0].up = true;
    return view;
}

TEST(PlanAttachment, APfInABondAttachesVfsWithoutANetworkOnly) {
    auto const refused = plan(bonded(host()), desired(), ask()).error();
    EXPECT_EQ(refused.problem, Problem::conflict);
    EXPECT_EQ(refused.detail,
              "enp1s0 is part of bond0: the host can't have an address of network train "
              "on it");
    EXPECT_THAT(refused.remedy, HasSubstr("ip link set enp1s0 nomaster"));
    auto without = ask();
    without.network.reset();
    auto const planned = plan(bonded(host()), desired(), without).value();
    EXPECT_THAT(steps_of<SetLink>(planned.plan), IsEmpty());
    EXPECT_EQ(steps_of<AttachHostdev>(planned.plan).size(), 1U);
}

TEST(PlanAttachment, TheLinkOfAPfThatJoinedABondSinceIsTheBonds) {
    auto without = ask();
    without.network.reset();
    auto const attached = with_attachment(desired(), host(), "aaaa0001", without);
    ASSERT_FALSE(attached.pfs.at(pf_address).base->up);
    auto const attachment = attached.attachments.at("aaaa0001");
    EXPECT_EQ(steps_of<SetLink>(plan_detach(bonded(host()), attached, attachment).value()).size(),
              0U);
    auto apart = bonded(host());
    apart.kernel.pfs[pf_address].info.controller.reset();
    EXPECT_EQ(steps_of<SetLink>(plan_detach(apart, attached, attachment).value()),
              (std::vector<SetLink>{{{pf_address, {}}, false, 1500}}));
}

// The link trains while the VF is configured, bound and plugged in, unless the driver needs it
// first.
TEST(PlanAttachment, WaitsForTheCarrierWhereSomethingNeedsIt) {
    AwaitCarrier const wait{{pf_address, {}}};
    auto const place = [](Plan const& plan, Step const& step) {
        return std::ranges::find(plan.steps, step) - plan.steps.begin();
    };
    auto without = ask();
    without.network.reset();
    without.verify.reset();
    auto const late = plan(host(), desired(), without).value().plan;
    EXPECT_EQ(late.steps.back(), Step(wait));
    auto limited = without;
    limited.settings.max_tx_rate_mbps = 100;
    auto const early = plan(host(), desired(), limited).value().plan;
    EXPECT_LT(place(early, steps_of<SetLink>(early).at(0)), place(early, wait));
    EXPECT_EQ(place(early, wait) + 1, place(early, steps_of<ConfigureVfs>(early).at(0)));
    EXPECT_EQ(steps_of<AwaitCarrier>(early).size(), 1U);
    auto up = host();
    up.kernel.pfs[pf_address].info.up = up.kernel.pfs[pf_address].interfaces[0].up = true;
    EXPECT_THAT(steps_of<AwaitCarrier>(plan(up, desired(), limited).value().plan), IsEmpty())
        << "nothing has changed the link";
}

TEST(PlanAttachment, UnbindsAHostDriverBeforeConfiguring) {
    auto view = host();
    view.kernel.pfs[pf_address].vfs[0].driver = "igbvf";
    auto const planned = plan(view, desired(), ask()).value();
    EXPECT_EQ(steps_of<BindVfs>(planned.plan),
              (std::vector<BindVfs>{{pf_address, {0}, {}}, {pf_address, {0}, "vfio-pci"}}));
}

TEST(PlanAttachment, RefusesWhileLibvirtCannotBeAsked) {
    auto view = host();
    view.hypervisor.stale = true;
    EXPECT_EQ(plan(view, desired(), ask()).error().problem, Problem::unavailable);
}

}  // namespace
}  // namespace vfmgr
