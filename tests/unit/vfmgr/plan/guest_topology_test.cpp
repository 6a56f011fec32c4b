// SPDX-License-Identifier: Apache-2.0
// Where a VM's GPUs and VFs are to be in its PCI tree, and what it then finds near.
#include "vfmgr/plan/guest_topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/gpu_host.hpp"

namespace vfmgr {
namespace {

using namespace test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PciAddress bus(std::uint8_t number) {
    return {0, number, 0, 0};
}

// Below port `port` of switch `upper`, whose root port is `root`.
PciPlace below(std::uint8_t number, int node, std::uint8_t root, std::uint8_t upper) {
    PciPlace place{bus(number), {}, node, {}, {}};
    place.above = {{PciAddress{0, static_cast<std::uint8_t>(0xd0 + node), root, 0}},
                   {PciAddress{0, 0xe0, root, 0}},
                   {PciAddress{0, 0xf0, upper, static_cast<std::uint8_t>(number % 8)}}};
    if (upper != 0) {
        place.above.push_back({PciAddress{0, 0xa0, upper, 0}});
        place.above.push_back({PciAddress{0, 0xb0, upper, static_cast<std::uint8_t>(number % 8)}});
        place.above[2].address = {0, 0xf0, upper, 0};
    }
    return place;
}

GuestPcie room() {
    return {5, {3, 4, 5, 6, 7, 8}, {}, {}};
}

// vm1 is shut off and has these GPUs, and these PFs as they are.
GpuHost vm_off(std::vector<PciPlace> const& gpus, std::vector<PciPlace> const& nics) {
    std::vector<NearNic> near;
    for (auto const& nic : nics) near.push_back({nic, 4});
    auto host = gpu_host(gpus, near);
    auto& vm = host.view.hypervisor.vms.at(example::vm1_uuid);
    for (auto const& nic : nics) vm.config.push_back({nic.address, std::nullopt});
    vm.live.clear();
    vm.state = VmState::shut_off;
    vm.pcie = room();
    return host;
}

VmInfo& vm_in(GpuHost& host) {
    return host.view.hypervisor.vms.at(example::vm1_uuid);
}

// A GPU and a NIC below switch 1, another pair below switch 2.
GpuHost two_switches() {
    return vm_off({below(0x11, 0, 1, 0), below(0x12, 1, 2, 0)},
                  {below(0x21, 0, 1, 0), below(0x22, 1, 2, 0)});
}

std::vector<PciDistance> proposed(GpuHost& host) {
    std::vector<PciDistance> all;
    for (auto const& pair : vm_topology(host.view, vm_in(host)).pairs) all.push_back(pair.proposed);
    return all;
}

Error placing_refusal(GpuHost const& host, bool back = false) {
    auto const plan = plan_placing(host.view, "vm1", back);
    EXPECT_FALSE(plan);
    return plan ? Error{} : plan.error();
}

PlaceHostdevs const& step_of(Plan const& plan) {
    return *as<PlaceHostdevs>(plan.steps.at(0));
}

TEST(GuestTopology, PutsWhatSharesASwitchBelowOne) {
    auto host = two_switches();
    auto const topology = vm_topology(host.view, vm_in(host));
    EXPECT_THAT(proposed(host), ElementsAre(PciDistance::pix, PciDistance::phb, PciDistance::phb,
                                            PciDistance::pix));
    EXPECT_EQ(topology.pairs.at(0).on_host, PciDistance::pix);
    EXPECT_EQ(topology.pairs.at(1).on_host, PciDistance::sys);
    EXPECT_EQ(topology.devices.at(0).proposed, "00/03.0/00.0/00.0/00.0");
    EXPECT_EQ(topology.devices.at(2).proposed, "00/03.0/00.0/01.0/00.0");
    EXPECT_EQ(topology.devices.at(1).proposed, "00/04.0/00.0/00.0/00.0");
    EXPECT_FALSE(topology.placed);
    for (auto const* const model :
         {"model='pcie-root-port'", "model='pcie-switch-upstream-port'",
          "model='pcie-switch-downstream-port'", "<alias name='ua-vfmgr-pcie-5'/>"})
        EXPECT_THAT(topology.xml, HasSubstr(model));
    EXPECT_THAT(topology.xml, Not(HasSubstr("expander")));
}

TEST(GuestTopology, KeepsSwitchesOfOnePortApart) {
    auto host = vm_off({below(0x11, 0, 1, 1), below(0x12, 0, 1, 2)},
                       {below(0x21, 0, 1, 1), below(0x22, 0, 1, 2)});
    EXPECT_THAT(proposed(host), ElementsAre(PciDistance::pix, PciDistance::pxb, PciDistance::pxb,
                                            PciDistance::pix));
}

TEST(GuestTopology, PutsNodesOfTheHostAtTheirCells) {
    auto host = two_switches();
    vm_in(host).pcie->cell_nodes = {0, 1};
    EXPECT_THAT(proposed(host), ElementsAre(PciDistance::pix, PciDistance::sys, PciDistance::sys,
                                            PciDistance::pix));
    auto const xml = vm_topology(host.view, vm_in(host)).xml;
    // Each bus has four ports below it: two ports of the switch, its own, and the root port.
    EXPECT_THAT(xml, HasSubstr("<target busNr='247'><node>0</node></target>"));
    EXPECT_THAT(xml, HasSubstr("<target busNr='238'><node>1</node></target>"));
}

TEST(GuestTopology, LeavesACellWithoutAPairAlone) {
    auto host = vm_off({below(0x11, 0, 1, 0)}, {below(0x21, 1, 2, 0)});
    vm_in(host).pcie->cell_nodes = {0, 1};
    EXPECT_EQ(placing_refusal(host).problem, Problem::conflict);
}

TEST(GuestTopology, PlanIsOneStep) {
    auto const host = two_switches();
    auto const plan = plan_placing(host.view, "vm1", false).value();
    ASSERT_EQ(plan.steps.size(), 1U);
    EXPECT_THAT(step_of(plan).hostdevs,
                ElementsAre(PlacedHostdev{bus(0x11), {}, {0}}, PlacedHostdev{bus(0x12), {}, {1}},
                            PlacedHostdev{bus(0x21), {}, {0}}, PlacedHostdev{bus(0x22), {}, {1}}));
    EXPECT_THAT(plan.blast_radius, ElementsAre(HasSubstr("VM vm1 finds these devices")));
}

TEST(GuestTopology, UndoIsWhatWasPlacedBefore) {
    auto host = two_switches();
    vm_in(host).pcie->placed = {{bus(0x11), {}, {0}}, {bus(0x21), {}, {0}}};
    auto const plan = plan_placing(host.view, "vm1", false).value();
    auto const undo = inverse(plan.steps.at(0), host.view);
    ASSERT_EQ(undo.size(), 1U);
    EXPECT_EQ(as<PlaceHostdevs>(undo[0])->hostdevs, vm_in(host).pcie->placed);
    auto const back = plan_placing(host.view, "vm1", true).value();
    EXPECT_THAT(step_of(back).hostdevs, IsEmpty());
}

TEST(GuestTopology, WhatIsPlacedAlreadyNeedsNoStep) {
    auto host = two_switches();
    EXPECT_THAT(plan_placing(host.view, "vm1", true).value().steps, IsEmpty());
    vm_in(host).pcie->placed = hostdevs_to_place(host.view, vm_in(host)).value();
    vm_in(host).state = VmState::running;
    EXPECT_THAT(plan_placing(host.view, "vm1", false).value().steps, IsEmpty());
}

TEST(GuestTopology, RefusesAVmThatRuns) {
    auto host = two_switches();
    vm_in(host).state = VmState::running;
    EXPECT_THAT(placing_refusal(host).remedy, HasSubstr("virsh shutdown vm1"));
    EXPECT_THAT(vm_topology(host.view, vm_in(host)).notes, Contains(HasSubstr("VM vm1 runs")));
}

TEST(GuestTopology, RefusesAMachineWithoutPcie) {
    auto host = two_switches();
    vm_in(host).pcie.reset();
    EXPECT_EQ(placing_refusal(host).problem, Problem::unsupported);
    EXPECT_THAT(placing_refusal(host).remedy, HasSubstr("q35"));
    EXPECT_THAT(vm_topology(host.view, vm_in(host)).xml, IsEmpty());
}

TEST(GuestTopology, RefusesATransientVm) {
    auto host = two_switches();
    vm_in(host).persistent = false;
    EXPECT_THAT(placing_refusal(host).remedy, HasSubstr("virsh define"));
}

TEST(GuestTopology, RefusesAVmWithoutAGpu) {
    EXPECT_THAT(placing_refusal(vm_off({}, {below(0x21, 0, 1, 0)})).detail,
                HasSubstr("has no GPU"));
}

TEST(GuestTopology, RefusesAVmWithoutAVf) {
    EXPECT_THAT(placing_refusal(vm_off({below(0x11, 0, 1, 0)}, {})).detail, HasSubstr("has no VF"));
}

TEST(GuestTopology, RefusesWhatIsNotNear) {
    EXPECT_THAT(placing_refusal(vm_off({below(0x11, 0, 1, 0)}, {below(0x21, 0, 2, 0)})).detail,
                HasSubstr("shares a switch"));
}

TEST(GuestTopology, RefusesAFunctionThatSharesItsSlot) {
    auto host = two_switches();
    for (auto& each : vm_in(host).config)
        if (each.pci == bus(0x12)) each.in_guest = "00/02.0/00.0";
    EXPECT_TRUE(plan_placing(host.view, "vm1", false));
    vm_in(host).config.push_back({PciAddress{0, 0x12, 0, 1}, std::nullopt, "00/02.0/00.1"});
    EXPECT_THAT(placing_refusal(host).detail, HasSubstr("0000:12:00.0 shares its slot"));
}

TEST(GuestTopology, RefusesATreeWithoutRoom) {
    auto host = two_switches();
    vm_in(host).pcie->free_slots = {3};
    EXPECT_THAT(placing_refusal(host).detail, HasSubstr("no slot of its root left"));
    vm_in(host).pcie = room();
    vm_in(host).pcie->next_bus = 254;
    EXPECT_THAT(placing_refusal(host).detail, HasSubstr("no buses left"));
    vm_in(host).pcie = room();
    vm_in(host).pcie->cell_nodes = {0, 1};
    vm_in(host).pcie->next_bus = 235;
    EXPECT_THAT(placing_refusal(host).detail, HasSubstr("no bus numbers left"));
}

TEST(GuestTopology, RefusesAnUnobservedHost) {
    auto host = two_switches();
    host.view.kernel.places.reset();
    EXPECT_EQ(placing_refusal(host).problem, Problem::unavailable);
}

TEST(GuestTopology, AFullSwitchRefuses) {
    std::vector<PlacedHostdev> many;
    for (std::uint8_t i = 0; i < 33; ++i) many.push_back({bus(i), {}, {0}});
    auto const places = guest_places(room(), "vm1", many);
    ASSERT_FALSE(places);
    EXPECT_THAT(places.error().detail, HasSubstr("no port of a switch left"));
}

}  // namespace
}  // namespace vfmgr
