// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/marked_xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfmgr/hypervisor/domain_xml.hpp"

namespace vfmgr {
namespace {

using ::testing::HasSubstr;

constexpr char const* by_hand = R"(<domain type='kvm'><!-- mine --><name>vm1</name>
  <uuid>11111111-2222-3333-4444-000000000001</uuid><title> a  b </title>
  <devices>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source><address domain='0x0000' bus='0x01' slot='0x10' function='0x2'/></source>
    </hostdev>
    <hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/>
      <source><address domain='0x0000' bus='0x01' slot='0x10' function='0x4'/></source>
      <rom bar='off'/><address type='pci' domain='0x0000' bus='0x02' slot='0x00' function='0x0'/>
    </hostdev>
  </devices></domain>)";

MarkHostdev marking(PciAddress const& pci) {
    MarkHostdev step;
    step.vm = "vm1";
    step.attachment = "3f9c2b1d";
    step.pci = pci;
    step.config = true;
    step.alias = "ua-vfmgr-3f9c2b1d";
    return step;
}

TEST(MarkedXml, NamesThatDeviceAndLeavesAllElse) {
    auto const step = marking({0, 1, 0x10, 4});
    auto const marked = marked_xml(by_hand, step).value();
    auto const domain = parse_domain_xml(marked).value();
    auto const& ours = *find_alias(domain, *step.alias);
    EXPECT_EQ(ours.pci, step.pci);
    EXPECT_FALSE(ours.managed);
    EXPECT_EQ(ours.guest, (PciAddress{0, 2, 0, 0}));
    auto const& other = *find_host_pci(domain, {0, 1, 0x10, 2});
    EXPECT_FALSE(other.alias);
    EXPECT_TRUE(other.managed);
    for (auto const* const kept : {"<!-- mine -->", "<title> a  b </title>", "<rom bar="})
        EXPECT_THAT(marked, HasSubstr(kept));
}

TEST(MarkedXml, AndBack) {
    auto back = marking({0, 1, 0x10, 4});
    auto const marked = marked_xml(by_hand, back).value();
    back.alias.reset();
    back.managed = true;
    auto const domain = parse_domain_xml(marked_xml(marked, back).value()).value();
    auto const was = parse_domain_xml(by_hand).value();
    EXPECT_EQ(domain.hostdevs, was.hostdevs);
}

TEST(MarkedXml, RefusesADeviceThatIsNotThere) {
    auto const refused = marked_xml(by_hand, marking({0, 1, 0x10, 6}));
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_THAT(refused.error().detail, HasSubstr("no <hostdev> at 0000:01:10.6"));
    EXPECT_FALSE(marked_xml("<domain", marking({0, 1, 0x10, 4})));
}

TEST(MarkedXml, AWordCanBeNoMarkup) {
    auto step = marking({0, 1, 0x10, 4});
    step.alias = "ua-'/><disk>";
    auto const domain = parse_domain_xml(marked_xml(by_hand, step).value()).value();
    EXPECT_TRUE(find_alias(domain, "ua-'/><disk>"));
}

}  // namespace
}  // namespace vfmgr
