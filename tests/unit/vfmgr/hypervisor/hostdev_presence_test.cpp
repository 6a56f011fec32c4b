// SPDX-License-Identifier: Apache-2.0
#include "shorthand.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using test::pci;

AttachHostdev step() {
    AttachHostdev expected;
    expected.vm_uuid = "0b0b0b0b-1111-2222-3333-444444444444";
    expected.attachment = "3f9c2b1d";
    expected.pci = pci("0000:01:10.4");
    return expected;
}

DomainXml vm(std::vector<DomainHostdev> hostdevs) {
    DomainXml domain;
    domain.name = "db1";
    domain.hostdevs = std::move(hostdevs);
    return domain;
}

TEST(Presence, AbsentBesideOtherDevices) {
    auto const seen = presence(vm({{pci("0000:01:10.0"), "ua-vfmgr-00000000", std::nullopt}}),
                               XmlPart::live, step());
    ASSERT_TRUE(seen);
    EXPECT_EQ(*seen, Presence::absent);
}

TEST(Presence, PresentUnderOurAlias) {
    auto const seen = presence(vm({{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d", std::nullopt}}),
                               XmlPart::config, step());
    ASSERT_TRUE(seen);
    EXPECT_EQ(*seen, Presence::present);
}

TEST(Presence, SomebodyElseHasTheVf) {
    auto const named =
        presence(vm({{pci("0000:01:10.4"), "hostdev0", std::nullopt}}), XmlPart::live, step());
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().problem, Problem::vf_in_use);
    EXPECT_EQ(named.error().detail, "0000:01:10.4 is already in VM db1 (live), as hostdev0");

    auto const unnamed =
        presence(vm({{pci("0000:01:10.4"), std::nullopt, std::nullopt}}), XmlPart::config, step());
    ASSERT_FALSE(unnamed);
    EXPECT_EQ(unnamed.error().problem, Problem::vf_in_use);
    EXPECT_EQ(unnamed.error().detail,
              "0000:01:10.4 is already in VM db1 (persistent), as a device without an alias");
}

TEST(Presence, OurAliasOnAnotherDevice) {
    auto const seen = presence(vm({{pci("0000:01:10.6"), "ua-vfmgr-3f9c2b1d", std::nullopt}}),
                               XmlPart::live, step());
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().problem, Problem::conflict);
    EXPECT_EQ(seen.error().detail,
              "device ua-vfmgr-3f9c2b1d of VM db1 (live) is 0000:01:10.6, not 0000:01:10.4");
}

}  // namespace
}  // namespace vfmgr
