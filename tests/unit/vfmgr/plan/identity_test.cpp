// SPDX-License-Identifier: Apache-2.0
// No identity is handed out that anything visible has: an interface of a VM, another netdev.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

Error refusal(Result<AttachmentPlan> const& planned) {
    return planned ? Error{} : planned.error();
}

struct Identity : testing::Test {
    HostView view = host();
    DesiredState goal = desired();

    Identity() { view.kernel.network.emplace(); }
    [[nodiscard]] VfState& first_vf() { return view.kernel.pfs[pf_address].vfs[0]; }
    [[nodiscard]] VmInfo& vm(char const* uuid) { return view.hypervisor.vms[uuid]; }
    NetdevState& netdev(std::string const& name, MacAddress const& address) {
        auto& added = view.kernel.network->netdevs[name];
        added.ethernet = true;
        added.mac = address;
        return added;
    }
    // The answer to vm1's request for VF 0 with this MAC.
    [[nodiscard]] Result<AttachmentPlan> request(MacAddress const& address) const {
        auto spec = ask();
        spec.vf = 0;
        spec.settings.mac = address;
        return plan(view, goal, spec);
    }
    // Why none of the MACs is chosen, or the one that is.
    [[nodiscard]] std::string choice_among(std::vector<Range<MacAddress>> const& macs) const {
        auto ranges = goal;
        ranges.handed_out.identities.macs = macs;
        auto const planned = plan(view, ranges, ask());
        return planned ? to_string(planned->attachment.settings.mac.value())
                       : std::string(enum_name(planned.error().problem));
    }
    void expect_taken_by(std::string const& owner) const {
        auto const refused = refusal(request(mac(7)));
        EXPECT_EQ(refused.problem, Problem::conflict);
        EXPECT_EQ(refused.detail, "MAC 02:00:00:00:00:07 is already used by " + owner);
        EXPECT_EQ(for_tenants(refused).detail,
                  "MAC 02:00:00:00:00:07 is already in use on this host");
        EXPECT_EQ(choice_among({{mac(7), mac(7)}}), "limit_exceeded");
        EXPECT_EQ(choice_among({{mac(7), mac(8)}}), "02:00:00:00:00:08");
    }
    void expect_free() const {
        auto const granted = request(mac(7));
        EXPECT_TRUE(granted) << refusal(granted).detail;
        EXPECT_EQ(choice_among({{mac(7), mac(7)}}), "02:00:00:00:00:07");
    }
};

TEST_F(Identity, AnInterfaceOfAVmHasItsMac) {
    vm(vm2_uuid).interfaces = {{mac(9), "network", {}}, {mac(7), "bridge", {}}};
    expect_taken_by("an interface of VM vm2 (type bridge)");
    vm(vm2_uuid).state = VmState::shut_off;
    expect_taken_by("an interface of VM vm2 (type bridge)");
}

TEST_F(Identity, AnotherInterfaceOfTheSameVmHasItsMac) {
    vm(vm1_uuid).interfaces = {{mac(7), "network", {}}};
    expect_taken_by("an interface of VM vm1 (type network)");
    vm(vm1_uuid).interfaces = {{mac(7), "hostdev", PciAddress{0, 5, 0, 1}}};
    expect_taken_by("an interface of VM vm1 (type hostdev)");
}

TEST_F(Identity, TheVfAsLibvirtsInterfaceIsNoOtherOwner) {
    vm(vm1_uuid).interfaces = {{mac(7), "hostdev", first_vf().pci}, {mac(7), "network", {}}};
    expect_free();
}

TEST_F(Identity, AnInterfaceThatAwaitsTheVfSharesItsMac) {
    vm(vm1_uuid).interfaces = {{mac(7), "direct", {}, true}};
    netdev("macvtap0", mac(7));
    EXPECT_TRUE(request(mac(7)));
    EXPECT_EQ(choice_among({{mac(7), mac(7)}}), "limit_exceeded") << "nobody asked for a pair";
    view.kernel.pfs[pf_address].vfs[5].settings.mac = mac(7);
    EXPECT_THAT(refusal(request(mac(7))).detail, HasSubstr("VF 5 of enp1s0"));
    view = host();
    vm(vm2_uuid).interfaces = {{mac(7), "network", {}, true}};
    expect_taken_by("an interface of VM vm2 (type network)");
}

TEST_F(Identity, ANetdevOfTheHostHasItsMac) {
    netdev("br0", mac(7));
    expect_taken_by("network device br0");
}

TEST_F(Identity, AnotherVfsNetdevHasItsMac) {
    netdev("enp1s0v1", mac(7)).pci = view.kernel.pfs[pf_address].vfs[1].pci;
    expect_taken_by("network device enp1s0v1");
}

TEST_F(Identity, TheVfsOwnNetdevIsNoOtherOwner) {
    auto& own = netdev("enp1s0v0", mac(7));
    own.pci = first_vf().pci;
    netdev("enp1s0v0.5", mac(7)).parent = "enp1s0v0";
    expect_free();
    own.pci.reset();  // before Linux 5.14
    first_vf().ifname = "enp1s0v0";
    expect_free();
}

TEST_F(Identity, AnIndependentDeviceThatHasTheVfsMacStays) {
    netdev("enp1s0v0", mac(7)).pci = first_vf().pci;
    netdev("bond0", mac(7));
    expect_taken_by("network device bond0");
}

// VLAN devices, vfmgr's own too, and bridges share their PF's MAC.
TEST_F(Identity, ThePfIsNamedBeforeWhatIsOnIt) {
    auto const of_pf = view.kernel.pfs[pf_address].info.mac.value();
    netdev("enp1s0", of_pf).pci = pf_address;
    netdev("br0", of_pf);
    netdev("enp1s0.100", of_pf).parent = "enp1s0";
    EXPECT_THAT(refusal(request(of_pf)).detail, HasSubstr("already used by PF enp1s0"));
    expect_free();
}

TEST_F(Identity, AChangedMacIsCheckedTheSame) {
    auto spec = ask();
    spec.network.reset();
    goal = with_attachment(goal, view, "aaaa0001", spec);
    auto const& attachment = goal.attachments.at("aaaa0001");
    auto& state = view.kernel.pfs[pf_address].vfs[attachment.vf.index];
    state.driver = attachment.driver;
    state.settings = overlay(state.settings, attachment.settings);
    vm(vm1_uuid).live = vm(vm1_uuid).config = {{attachment.vf_pci, hostdev_alias("aaaa0001")}};
    AttachmentPatch patch;
    patch.allow_reset = true;
    patch.settings.set.mac = mac(20);
    auto const change = [&] { return plan_change(view, goal, attachment, patch, "seed"); };
    ASSERT_TRUE(change());
    netdev("br0", mac(20));
    EXPECT_THAT(refusal(change()).detail, HasSubstr("already used by network device br0"));
    patch.settings.set.mac = attachment.settings.mac;
    netdev("br1", *attachment.settings.mac);
    EXPECT_TRUE(change()) << "what the VF has stays";
}

TEST_F(Identity, APfHasItsGuid) {
    auto& pf = view.kernel.pfs[pf_address];
    pf.info.link_layer = LinkLayer::infiniband;
    pf.info.identity.guid = Guid{0x42};
    goal.handed_out.identities.guids = {{Guid{0x42}, Guid{0x43}}};
    auto spec = ask();
    spec.network.reset();
    EXPECT_EQ(plan(view, goal, spec)->attachment.settings.port_guid, Guid{0x43});
    spec.settings.port_guid = Guid{0x42};
    auto const refused = refusal(plan(view, goal, spec));
    EXPECT_EQ(refused.problem, Problem::conflict);
    EXPECT_EQ(refused.detail, "GUID 00:00:00:00:00:00:00:42 is already used by PF enp1s0");
}

}  // namespace
}  // namespace vfmgr
