// SPDX-License-Identifier: Apache-2.0
// What an attachment needs of the VM, and what a request may add to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::HasSubstr;

constexpr PciAddress taken_address{0, 3, 0, 0};
constexpr PciAddress free_address{0, 5, 0, 0};
constexpr PciAddress other_address{0, 6, 0, 0};

VmInfo& vm1(HostView& view) {
    return view.hypervisor.vms.at(vm1_uuid);
}

HostView without_ports() {
    auto view = host();
    vm1(view).free_pcie_ports = 0;
    return view;
}

HostView without_vsock() {
    auto view = host();
    vm1(view).has_vsock = false;
    vm1(view).vsock_cid.reset();
    return view;
}

HostView with_free_addresses() {
    auto view = host();
    vm1(view).free_live = {free_address, other_address};
    vm1(view).free_config = {free_address};
    return view;
}

AttachmentSpec at(PciAddress const& address) {
    auto spec = ask();
    spec.guest_address = address;
    return spec;
}

AttachmentSpec adding_vsock() {
    auto spec = ask();
    spec.add_vsock = true;
    return spec;
}

AttachmentSpec adding_ports() {
    auto spec = ask();
    spec.add_ports = true;
    return spec;
}

TEST(PlaceInVm, PutsTheDeviceWhereItWasRequested) {
    auto const planned = plan(with_free_addresses(), desired(), at(free_address)).value();
    auto const step = steps_of<AttachHostdev>(planned.plan).at(0);
    EXPECT_EQ(step.guest_address, free_address);
    EXPECT_THAT(sentence(step), HasSubstr(", at 0000:05:00.0"));
}

TEST(PlaceInVm, RefusesAnAddressThatIsTakenInEitherXml) {
    auto const taken = plan(with_free_addresses(), desired(), at(taken_address)).error();
    EXPECT_EQ(taken.problem, Problem::conflict);
    EXPECT_THAT(taken.detail,
                HasSubstr("in the running VM vm1 nothing can be put at 0000:03:00.0"));
    EXPECT_THAT(taken.remedy, HasSubstr("0000:05:00.0, 0000:06:00.0"));
    EXPECT_THAT(plan(with_free_addresses(), desired(), at(other_address)).error().detail,
                HasSubstr("in the persistent VM vm1 nothing can be put at 0000:06:00.0"));
    auto live = at(other_address);
    live.persistence = Persistence::live;
    EXPECT_TRUE(plan(with_free_addresses(), desired(), live))
        << "the persistent XML is not changed";
}

TEST(PlaceInVm, GivesAnAddressOfASetOnce) {
    auto const set = plan_attachments(with_free_addresses(), desired(), {"aaaa0001", "aaaa0002"},
                                      {at(free_address), at(free_address)}, "seed");
    EXPECT_THAT(set.error().detail, HasSubstr("attachment 2 of 2: in the running VM vm1"));
}

TEST(PlaceInVm, WaitsForTheNextStartWhereNoPortIsFree) {
    auto const refused = plan(without_ports(), desired(), ask()).error();
    EXPECT_THAT(refused.remedy, HasSubstr("add_ports"));
    auto const planned = plan(without_ports(), desired(), adding_ports()).value();
    EXPECT_FALSE(planned.attachment.live);
    EXPECT_TRUE(planned.attachment.config);
    EXPECT_THAT(planned.plan.notes, Contains(HasSubstr("from its next start")));
    EXPECT_TRUE(plan(host(), desired(), adding_ports()).value().attachment.live)
        << "a port is free";
}

TEST(PlaceInVm, AddsNoPortsToAVmThatIsNotToBeChanged) {
    auto view = without_ports();
    auto spec = adding_ports();
    spec.persistence = Persistence::live;
    EXPECT_THAT(plan(view, desired(), spec).error().remedy, HasSubstr("persistence at auto"));
    vm1(view).persistent = false;
    EXPECT_THAT(plan(view, desired(), adding_ports()).error().remedy, HasSubstr("virsh define"));
}

TEST(PlaceInVm, VerifiesNothingThatComesWithTheNextStart) {
    auto spec = adding_ports();
    spec.verify = VerifyMode::required;
    auto const refused = plan(without_ports(), desired(), spec).error();
    EXPECT_THAT(refused.detail, HasSubstr("gets the VF at its next start"));
    spec.verify = VerifyMode::background;
    EXPECT_TRUE(plan(without_ports(), desired(), spec));
}

TEST(PlaceInVm, AddsAVsockDeviceBeforeTheVf) {
    auto spec = adding_vsock();
    spec.verify = VerifyMode::required;
    auto const planned = plan(without_vsock(), desired(), spec).value();
    auto const& steps = planned.plan.steps;
    Step const vsock = AddVsock{vm1_uuid, planned.attachment.vf, true, true, "vm1"};
    auto const added = std::ranges::find(steps, vsock);
    ASSERT_NE(added, steps.end());
    EXPECT_TRUE(as<AttachHostdev>(*std::next(added)));
    EXPECT_EQ(sentence(vsock), "give VM vm1 a vsock device: the running VM and its persistent XML");
    EXPECT_THAT(planned.plan.notes, Contains("VM vm1 gets a vsock device, and keeps it"));
}

TEST(PlaceInVm, AddsNoSecondVsockDevice) {
    EXPECT_TRUE(steps_of<AddVsock>(plan(host(), desired(), adding_vsock()).value().plan).empty());
    auto view = without_vsock();
    vm1(view).has_vsock = true;  // in the persistent XML: the VM has it from its next start
    auto const added = steps_of<AddVsock>(plan(view, desired(), adding_vsock()).value().plan);
    ASSERT_EQ(added.size(), 1U);
    EXPECT_TRUE(added[0].live);
    EXPECT_FALSE(added[0].config);
}

TEST(PlaceInVm, NeedsAPortForTheVsockDeviceToo) {
    auto view = without_vsock();
    vm1(view).free_pcie_ports = 1;
    auto const refused = plan(view, desired(), adding_vsock()).error();
    EXPECT_THAT(refused.detail, HasSubstr("has 1 free PCIe port of the 2 needed"));
    vm1(view).free_pcie_ports = 2;
    EXPECT_TRUE(plan(view, desired(), adding_vsock()));
}

TEST(PlaceInVm, AddsOneVsockDeviceForASet) {
    auto view = without_vsock();
    vm1(view).free_pcie_ports = 3;
    auto verified = adding_vsock();
    verified.verify = VerifyMode::required;
    auto const set =
        plan_attachments(view, desired(), {"aaaa0001", "aaaa0002"}, {verified, verified}, "seed");
    ASSERT_TRUE(set) << set.error().detail;
    EXPECT_EQ(steps_of<AddVsock>(set->plan).size(), 1U);
    vm1(view).free_pcie_ports = 2;
    EXPECT_FALSE(
        plan_attachments(view, desired(), {"aaaa0001", "aaaa0002"}, {verified, verified}, "seed"));
}

}  // namespace
}  // namespace vfmgr
