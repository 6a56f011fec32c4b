// SPDX-License-Identifier: Apache-2.0
// A PF's stored state moves along to its current address.
#include "vfmgr/plan/rekey.hpp"

#include <gmock/gmock.h>

#include "example_host.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MacAddress const other_mac{{0x52, 0x54, 0, 0xbb, 0, 9}};

// A PF as in example_host.hpp, at another address.
PfState at(PciAddress const& address, MacAddress const& permanent, std::uint16_t vfs) {
    auto state = pf(vfs);
    state.info.pci = address;
    state.info.mac = permanent;
    state.info.identity.mac = permanent;
    for (auto& interface : state.interfaces) interface.id.pf = address;
    for (auto& vf : state.vfs) vf.pci.bus = address.bus;
    return state;
}

struct RekeyTest : testing::Test {
    HostView view = host();
    DesiredState goal = desired();
    MacAddress first_mac = *view.kernel.pfs.at(pf_address).info.mac;

    RekeyTest() {
        view.kernel.complete = true;
        goal.identities[pf_address] = view.kernel.pfs.at(pf_address).info.identity;
        goal = with_attachment(goal, view, "aaaa0001", ask());
        goal.firmware_tries[pf_address] = {};
        in_xml(vm1_uuid, "aaaa0001");
    }
    void in_xml(char const* uuid, std::string const& id) {
        view.hypervisor.vms[uuid].state = VmState::shut_off;
        view.hypervisor.vms[uuid].config = {{goal.attachments.at(id).vf_pci, hostdev_alias(id)}};
    }
    void move_pf(std::uint16_t vfs = 7) {
        view.kernel.pfs.clear();
        view.kernel.pfs[second_pf] = at(second_pf, first_mac, vfs);
    }
    // A second PF, at `second_pf`, whose VF 2 is attached to vm2.
    void manage_second() {
        view.kernel.pfs[second_pf] = at(second_pf, other_mac, 7);
        goal.pfs[second_pf] = goal.pfs.at(pf_address);
        goal.identities[second_pf].mac = other_mac;
        auto attachment = goal.attachments.at("aaaa0001");
        attachment.id = "aaaa0002";
        attachment.vm_uuid = vm2_uuid;
        attachment.vm = "vm2";
        attachment.spec.pf = second_pf;
        attachment.vf = {second_pf, 2};
        attachment.vf_pci = view.kernel.pfs.at(second_pf).vfs[2].pci;
        goal.attachments["aaaa0002"] = attachment;
        in_xml(vm2_uuid, "aaaa0002");
    }
    void swap(std::uint16_t vfs = 7) {
        view.kernel.pfs[pf_address] = at(pf_address, other_mac, vfs);
        view.kernel.pfs[second_pf] = at(second_pf, first_mac, vfs);
    }
    [[nodiscard]] Result<RekeyPlan> rekey(PciAddress const& to = second_pf) const {
        return plan_rekey(view, goal, pf_address, to);
    }
    [[nodiscard]] Error refusal(PciAddress const& to = second_pf) const {
        auto const plan = rekey(to);
        return plan ? Error{} : plan.error();
    }
    [[nodiscard]] PciAddress vf_pci(PciAddress const& pf, std::size_t index) const {
        return view.kernel.pfs.at(pf).vfs[index].pci;
    }
};

TEST_F(RekeyTest, AllThatIsKeptGoesAlongAndTheXmlNamesTheNewAddress) {
    auto const before = goal.attachments.at("aaaa0001");
    move_pf();
    auto const planned = rekey().value();
    EXPECT_THAT(planned.moves, ElementsAre(PfMove{pf_address, second_pf}));
    EXPECT_FALSE(planned.makes_vfs);
    EXPECT_EQ(planned.plan.steps,
              (std::vector<Step>{
                  DetachHostdev{vm1_uuid, "aaaa0001", before.vf, before.vf_pci, false, true, "vm1"},
                  AttachHostdev{vm1_uuid,
                                "aaaa0001",
                                {second_pf, 0},
                                vf_pci(second_pf, 0),
                                before.settings.mac,
                                false,
                                true,
                                "vm1"}}));
    auto const after = rekeyed(view, goal, planned.moves);
    EXPECT_FALSE(after.pfs.contains(pf_address));
    EXPECT_EQ(after.pfs.at(second_pf).spec, goal.pfs.at(pf_address).spec);
    EXPECT_EQ(after.identities,
              (std::map<PciAddress, PfIdentity>{{second_pf, {first_mac, {}, {}}}}));
    EXPECT_TRUE(after.firmware_tries.contains(second_pf));
    auto const& attachment = after.attachments.at("aaaa0001");
    EXPECT_EQ(attachment.vf, (VfId{second_pf, 0}));
    EXPECT_EQ(attachment.vf_pci, vf_pci(second_pf, 0));
    EXPECT_EQ(attachment.settings, before.settings) << "the VM finds its own MAC";
    EXPECT_EQ(attachment.address, before.address);
    EXPECT_EQ(standing_of(view.kernel, after, second_pf).is, Standing::here);
    EXPECT_TRUE(require_same_pf(view, after, second_pf));
}

TEST_F(RekeyTest, VfsComeFirst) {
    move_pf(0);
    auto const planned = rekey().value();
    EXPECT_TRUE(planned.makes_vfs);
    EXPECT_EQ(steps_of<SetNumVfs>(planned.plan), (std::vector<SetNumVfs>{{second_pf, 7}}));
    EXPECT_THAT(steps_of<DetachHostdev>(planned.plan), IsEmpty());
    view.kernel.pfs.at(second_pf).info.total_vfs = 6;
    EXPECT_EQ(refusal().problem, Problem::limit_exceeded);
}

TEST_F(RekeyTest, PfsThatSwappedSlotsMoveTogether) {
    manage_second();
    swap(0);
    EXPECT_EQ(steps_of<SetNumVfs>(rekey()->plan).size(), 2U);
    swap();
    auto const planned = rekey().value();
    EXPECT_THAT(planned.moves,
                ElementsAre(PfMove{pf_address, second_pf}, PfMove{second_pf, pf_address}));
    ASSERT_EQ(planned.plan.steps.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(as<DetachHostdev>(planned.plan.steps[i]) != nullptr, i < 2) << i;
    auto const after = rekeyed(view, goal, planned.moves);
    EXPECT_EQ(after.attachments.at("aaaa0001").vf_pci, vf_pci(second_pf, 0));
    EXPECT_EQ(after.attachments.at("aaaa0002").vf_pci, vf_pci(pf_address, 2));
    EXPECT_EQ(after.attachments.size(), 2U);
    for (auto const& address : {pf_address, second_pf})
        EXPECT_EQ(standing_of(view.kernel, after, address).is, Standing::here);
}

TEST_F(RekeyTest, WhatNobodyKnowsToBeElsewhereIsNotPushedAside) {
    manage_second();
    view.kernel.pfs.erase(pf_address);
    view.kernel.pfs[second_pf] = at(second_pf, first_mac, 7);
    EXPECT_EQ(refusal().problem, Problem::conflict);
    EXPECT_THAT(refusal().remedy, HasSubstr("vfctl pf gone 0000:02:00.0"));
}

TEST_F(RekeyTest, IsRefusedOfWhatStandsWhereItStood) {
    view.kernel.pfs[second_pf] = at(second_pf, other_mac, 7);
    EXPECT_THAT(refusal().detail, HasSubstr("is still at its address"));
    EXPECT_THAT(refusal(pf_address).detail, HasSubstr("is still at its address"));
    view.kernel.pfs.at(pf_address).stale = true;
    EXPECT_EQ(refusal().problem, Problem::unavailable);
    EXPECT_EQ(plan_rekey(view, goal, second_pf, pf_address).error().problem, Problem::not_found);
}

TEST_F(RekeyTest, GoesOnlyWhereItIs) {
    move_pf();
    view.kernel.pfs[{0, 3, 0, 0}] = at({0, 3, 0, 0}, other_mac, 7);
    EXPECT_EQ(refusal({0, 3, 0, 0}).problem, Problem::conflict);
    EXPECT_THAT(refusal({0, 3, 0, 0}).remedy, HasSubstr("rekey 0000:01:00.0 0000:02:00.0"));
}

TEST_F(RekeyTest, AnotherCardTakesThePlaceByAPersonsWord) {
    view.kernel.pfs[pf_address] = at(pf_address, other_mac, 7);
    auto const planned = rekey(pf_address).value();
    EXPECT_THAT(planned.plan.blast_radius.front(), HasSubstr("takes the place of"));
    EXPECT_THAT(planned.plan.steps, IsEmpty()) << "the XML names the same address";
    auto const after = rekeyed(view, goal, planned.moves);
    EXPECT_EQ(after.identities.at(pf_address).mac, other_mac);
    EXPECT_EQ(after.attachments.size(), 1U);
    view.kernel.pfs.at(pf_address).info.identity = {};
    EXPECT_NE(refusal(pf_address).detail, "") << "nobody knows what it is";
}

TEST_F(RekeyTest, NobodyLosesAVf) {
    move_pf();
    view.kernel.pfs.at(second_pf).vfs[3].holders = {{812, "qemu"}};
    EXPECT_EQ(refusal().problem, Problem::vf_in_use);
    view.kernel.pfs.at(second_pf).vfs[3].holders.clear();
    view.hypervisor.vms[vm2_uuid].config = {{vf_pci(second_pf, 3), "mine"}};
    EXPECT_EQ(refusal().problem, Problem::vf_in_use);
    view.hypervisor.vms[vm2_uuid].config.clear();
    view.hypervisor.vms[vm1_uuid].live = view.hypervisor.vms[vm1_uuid].config;
    EXPECT_THAT(refusal().remedy, HasSubstr("shut it down first"));
}

TEST_F(RekeyTest, QuarantinesGoAlong) {
    auto const attachment = goal.attachments.at("aaaa0001");
    goal.quarantine[attachment.vf] = {attachment.vf, attachment, "not clean", {"mac"}, {}};
    goal.attachments.clear();
    move_pf();
    auto const after = rekeyed(view, goal, rekey()->moves);
    ASSERT_EQ(after.quarantine.size(), 1U);
    EXPECT_EQ(after.quarantine.begin()->first, (VfId{second_pf, 0}));
    EXPECT_EQ(after.quarantine.begin()->second.vf, (VfId{second_pf, 0}));
    EXPECT_EQ(after.quarantine.begin()->second.attachment.vf_pci, vf_pci(second_pf, 0));
}

}  // namespace
}  // namespace vfmgr
