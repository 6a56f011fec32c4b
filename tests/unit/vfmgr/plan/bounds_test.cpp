// SPDX-License-Identifier: Apache-2.0
// What root allows: each bound refuses what is beyond it, and nothing else.
#include "vfmgr/plan/bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;

PciAddress const bounded_pf{0, 1, 0, 0};
PciAddress const other_pf{0, 2, 0, 0};

std::string refusal(HostBounds const& bounds, Step step) {
    Plan plan;
    plan.steps.push_back(std::move(step));
    auto const allowed = within(bounds, {}, plan);
    if (allowed) return {};
    EXPECT_EQ(allowed.error().problem, Problem::forbidden);
    EXPECT_THAT(allowed.error().remedy, HasSubstr("/etc/vfmgr/vfmgr.toml"));
    return allowed.error().detail;
}

HostBounds of_pf(PfBounds own) {
    HostBounds bounds;
    bounds.pfs[bounded_pf] = std::move(own);
    return bounds;
}

ConfigureVfs configure(VfSpec settings) {
    return {bounded_pf, {{0, {}}, {3, std::move(settings)}}, {}};
}

VfSpec in_vlan(std::uint16_t id) {
    VfSpec settings;
    settings.vlan = Vlan{id};
    return settings;
}

TEST(WithinBounds, WithoutAnyEverythingIs) {
    VfSpec settings = in_vlan(4094);
    settings.trust = true;
    settings.spoofchk = false;
    for (Step const& step :
         {Step(SetNumVfs{bounded_pf, 500}), Step(configure(settings)),
          Step(BindVfs{bounded_pf, {0}, "any"}), Step(SetFirmware{bounded_pf, {}, {}}),
          Step(AddAddress{{bounded_pf, 7}, IpAddress::parse("1.1.1.1").value()}),
          Step(AttachHostdev{"uuid", "id", {bounded_pf, 0}, {}, {}, true, true, "vm"}),
          Step(AwaitVerification{"id", 1}), Step(AddSoftRdmaLink{{"rxe0", {}, "bond0"}})})
        EXPECT_EQ(refusal({}, step), "");
}

TEST(WithinBounds, TheNumberOfVfs) {
    auto const bounds = of_pf({.num_vfs_max = 4});
    EXPECT_EQ(refusal(bounds, SetNumVfs{bounded_pf, 4}), "");
    EXPECT_EQ(refusal(bounds, SetNumVfs{bounded_pf, 5}),
              "5 VFs of 0000:01:00.0 are not allowed: 4 are");
    EXPECT_EQ(refusal(bounds, SetNumVfs{other_pf, 5}), "");
}

TEST(WithinBounds, VlansOfVfsAndOfTheHost) {
    auto const bounds = of_pf({.vlans = {{{100, 199}, {7, 7}}}});
    EXPECT_EQ(refusal(bounds, configure(in_vlan(100))), "");
    EXPECT_EQ(refusal(bounds, configure(in_vlan(199))), "");
    EXPECT_EQ(refusal(bounds, configure(in_vlan(7))), "");
    EXPECT_EQ(refusal(bounds, configure({})), "") << "it is left alone";
    EXPECT_EQ(refusal(bounds, configure(in_vlan(200))),
              "VLAN 200 is not allowed on 0000:01:00.0: allowed are 100-199, 7");
    EXPECT_THAT(refusal(bounds, configure(in_vlan(0))), HasSubstr("VLAN 0 "));
    EXPECT_THAT(refusal(bounds, AddVlanInterface{{bounded_pf, 99}}), HasSubstr("VLAN 99 "));
    EXPECT_EQ(refusal(bounds, SetLink{{bounded_pf, {}}, true, 1500}), "")
        << "the PF's own link carries its VLANs";
    EXPECT_THAT(refusal(bounds, AddAddress{{bounded_pf, {}}, {}}), HasSubstr("VLAN 0 "));
    EXPECT_THAT(refusal(bounds, AddAddress{{bounded_pf, 8}, {}}), HasSubstr("VLAN 8 "));
    EXPECT_EQ(refusal(bounds, RemoveVlanInterface{{bounded_pf, 99}}), "")
        << "to remove is always allowed";
}

TEST(WithinBounds, TrustAndSpoofcheck) {
    auto const bounds = of_pf({.trust = false, .spoofchk_off = false});
    VfSpec settings;
    settings.trust = false;
    settings.spoofchk = true;
    EXPECT_EQ(refusal(bounds, configure(settings)), "");
    settings.spoofchk = false;
    EXPECT_EQ(refusal(bounds, configure(settings)),
              "spoofchk off is not allowed for VF 0000:01:00.0/3");
    settings.trust = true;
    EXPECT_EQ(refusal(bounds, configure(settings)),
              "trust on is not allowed for VF 0000:01:00.0/3");
}

// A VM gets the VF as it is where the plan does not change it.
TEST(WithinBounds, WhatAVfHasAlready) {
    HostView host;
    auto& vf = host.kernel.pfs[bounded_pf].vfs.emplace_back();
    vf.index = 3;
    vf.settings = in_vlan(100);
    vf.settings.trust = true;
    Plan plan;
    plan.steps = {AttachHostdev{"uuid", "id", {bounded_pf, 3}, {}, {}, true, true, ""}};
    EXPECT_TRUE(within(of_pf({.vlans = {{{100, 199}}}}), host, plan));
    EXPECT_EQ(within(of_pf({.vlans = {{{0, 0}}}}), host, plan).error().detail,
              "VLAN 100 is not allowed on 0000:01:00.0: allowed are 0");
    EXPECT_EQ(within(of_pf({.trust = false}), host, plan).error().detail,
              "trust on is not allowed for VF 0000:01:00.0/3");
    VfSpec plain = in_vlan(0);
    plain.trust = false;
    plan.steps.insert(plan.steps.begin(), configure(plain));
    EXPECT_TRUE(within(of_pf({.vlans = {{{0, 0}}}, .trust = false}), host, plan));
}

TEST(WithinBounds, DriversAndFirmware) {
    auto const bounds = of_pf({.drivers = {{"vfio-pci"}}, .firmware = false});
    EXPECT_EQ(refusal(bounds, BindVfs{bounded_pf, {0}, "vfio-pci"}), "");
    EXPECT_EQ(refusal(bounds, BindVfs{bounded_pf, {0}, {}}), "");
    EXPECT_EQ(refusal(bounds, BindVfs{bounded_pf, {0}, "iavf"}),
              "driver iavf is not allowed for VFs of 0000:01:00.0: allowed are vfio-pci");
    EXPECT_THAT(refusal(bounds, SetFirmware{bounded_pf, {}, {}}), HasSubstr("may not be changed"));
}

TEST(WithinBounds, AddressesOfTheHost) {
    HostBounds bounds;
    bounds.addresses = {IpPrefix::parse("192.168.0.0/16").value()};
    auto const add = [&](char const* address) {
        return refusal(bounds, AddAddress{{bounded_pf, {}}, IpAddress::parse(address).value()});
    };
    EXPECT_EQ(add("192.168.100.1"), "");
    EXPECT_EQ(add("10.0.0.1"),
              "10.0.0.1 may not be an address of this host: they lie in 192.168.0.0/16");
}

TEST(WithinBounds, APfOfItsOwnIsBoundedInWhatItDoesNotSayAsAllAre) {
    auto bounds = of_pf({.managed = true, .num_vfs_max = 4});
    bounds.default_pf = {.managed = false, .num_vfs_max = 2, .trust = false};
    EXPECT_EQ(refusal(bounds, SetNumVfs{bounded_pf, 4}), "");
    VfSpec trusted;
    trusted.trust = true;
    EXPECT_THAT(refusal(bounds, configure(trusted)), HasSubstr("trust on"));
    EXPECT_EQ(refusal(bounds, ResetVf{{other_pf, 0}}), "0000:02:00.0 may not be managed");
    EXPECT_EQ(refusal(bounds, AttachHostdev{"uuid", "id", {other_pf, 0}, {}, {}, true, true, ""}),
              "0000:02:00.0 may not be managed");
}

TEST(WithinBounds, ExternalHoldersAndTheirUsersMustBeNamed) {
    AttachExternal const without{{bounded_pf, 0}, "qm-104", {}};
    AttachExternal const with{{bounded_pf, 0}, "qm-104", 64055};
    HostBounds bounds;
    EXPECT_THAT(refusal(bounds, without), HasSubstr("external holders are not allowed"));
    bounds.external_holders.allowed = true;
    EXPECT_EQ(refusal(bounds, without), "");
    EXPECT_THAT(refusal(bounds, with), HasSubstr("user 64055: allowed are none"));
    bounds.external_holders.uids = {{7, 7}, {64055, 64056}};
    EXPECT_EQ(refusal(bounds, with), "");
    bounds.external_holders.uids = {{1, 64054}, {64056, 70000}};
    EXPECT_THAT(refusal(bounds, with), HasSubstr("allowed are 1-64054, 64056-70000"));
    EXPECT_EQ(refusal({}, DetachExternal{{bounded_pf, 0}, "qm-104", 64055}), "");
}

// As for a VM: the plan leaves trust alone, and the VF is trusted.
TEST(WithinBounds, WhatAnExternalHolderGetsIsJudgedAsItWillBe) {
    HostView host;
    auto& vf = host.kernel.pfs[bounded_pf].vfs.emplace_back();
    vf.settings.trust = true;
    auto bounds = of_pf({.trust = false});
    bounds.external_holders.allowed = true;
    Plan plan;
    plan.steps.emplace_back(AttachExternal{{bounded_pf, 0}, "qm-104", {}});
    EXPECT_FALSE(within(bounds, host, plan));
    vf.settings.trust = false;
    EXPECT_TRUE(within(bounds, host, plan));
}

TEST(UidRangeText, IsReadAndWritten) {
    EXPECT_EQ(UidRange::parse("100000-165535").value(), (UidRange{100000, 165535}));
    EXPECT_EQ(UidRange::parse("4294967294").value(), (UidRange{4294967294, 4294967294}));
    EXPECT_EQ(to_string(UidRange{100000, 165535}), "100000-165535");
    EXPECT_EQ(to_string(UidRange{7, 7}), "7");
    for (auto const* const wrong :
         {"", "0", "0-7", "-", "7-", "-7", "9-8", "4294967295", "1-4294967295", "a", "1-2-3", " 1"})
        EXPECT_FALSE(UidRange::parse(wrong)) << wrong;
}

TEST(VlanRangeText, IsReadAndWritten) {
    EXPECT_EQ(VlanRange::parse("100-199").value(), (VlanRange{100, 199}));
    EXPECT_EQ(VlanRange::parse("0").value(), (VlanRange{0, 0}));
    EXPECT_EQ(to_string(VlanRange{100, 199}), "100-199");
    EXPECT_EQ(to_string(VlanRange{7, 7}), "7");
    for (auto const* const wrong :
         {"", "-", "5-", "-5", "9-8", "4095", "1-4095", "1-2-3", "a", " 1"})
        EXPECT_FALSE(VlanRange::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace vfmgr
