// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/pci_config.hpp"

#include <gtest/gtest.h>

#include "tests/unit/vfmgr/machine/configuration_space.hpp"

namespace vfmgr::checks {
namespace {

// An Ethernet function with a list of capabilities that begins with PCI Express at 0x60.
ConfigurationSpace ethernet(std::size_t size) {
    ConfigurationSpace space(size);
    space.set(0x00, {0xb3, 0x15, 0x1d, 0x10, 6, 4, 0x10, 0}).set(0x08, {3, 0, 0, 2});
    space.set(0x0e, {0x80}).set(0x34, {0x60});
    if (size >= 256) space.set(0x60, {0x10, 0x9c, 0x02, 0}).set(0x9c, {0x11, 0});
    return space;
}

TEST(PciConfiguration, AnswersAnybody) {
    auto const read = parse_pci_configuration(ethernet(64).bytes());
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->answers);
    EXPECT_FALSE(read->pcie || read->shows_extended_capabilities);
    EXPECT_FALSE(parse_pci_configuration(std::string(63, '\0')));
}

TEST(PciConfiguration, HasCapabilities) {
    auto const read = parse_pci_configuration(ethernet(256).bytes());
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->shows_extended_capabilities);
    ASSERT_TRUE(read->pcie);
    EXPECT_EQ(read->pcie->kind, PcieKind::endpoint);
}

TEST(PciConfiguration, HasAts) {
    auto space = ethernet(4096);
    space.set(0x100, {0x0e, 0, 0x01, 0x18});  // ARI, then 0x180
    space.set(0x180, {0x10, 0, 0x01, 0x1c});  // SR-IOV, then 0x1c0
    space.set(0x1c0, {0x0f, 0, 0x01, 0}).set(0x1c6, {0, 0x80});
    auto const read = parse_pci_configuration(space.bytes());
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->shows_extended_capabilities);
    EXPECT_EQ(read->ats, std::optional(true));
    EXPECT_FALSE(read->acs);
}

TEST(PciConfiguration, HasAPortsAcsAndAri) {
    ConfigurationSpace space(4096);
    space.set(0x00, {0x86, 0x80, 0x2a, 0x35, 0, 0, 0x10, 0}).set(0x08, {4, 0, 4, 6});
    space.set(0x0e, {0x01}).set(0x34, {0x40}).set(0x40, {0x10, 0, 0x42, 0});
    space.set(0x64, {0x20}).set(0x68, {0x20});
    space.set(0x100, {0x0d, 0, 0x01, 0}).set(0x104, {0x5f, 0, 0x1d, 0});
    auto const read = parse_pci_configuration(space.bytes());
    ASSERT_TRUE(read && read->pcie && read->acs);
    EXPECT_EQ(*read->pcie, (PcieCapability{PcieKind::root_port, true}));
    EXPECT_EQ(*read->acs, (AcsCapability{0x5f, 0x1d}));
    EXPECT_EQ(describe_acs(read->acs->on),
              "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-");
}

TEST(PciConfiguration, OfAVfHasNoVendorAndAnswers) {
    auto space = ethernet(256);
    space.set(0x00, {0xff, 0xff, 0xff, 0xff});
    EXPECT_TRUE(parse_pci_configuration(space.bytes())->answers);
}

TEST(PciConfiguration, DoesNotAnswerWithOnes) {
    auto const read = parse_pci_configuration(std::string(4096, '\xff'));
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->answers);
    EXPECT_FALSE(read->pcie || read->acs || read->ats);
}

TEST(PciConfiguration, EndsWhereItsListsLoop) {
    auto space = ethernet(4096);
    space.set(0x60, {0x05, 0x9c}).set(0x9d, {0x60});  // MSI and MSI-X
    space.set(0x100, {0x0e, 0, 0x01, 0x15}).set(0x150, {0x0d, 0, 0x01, 0x10});
    auto const read = parse_pci_configuration(space.bytes());
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->pcie);
    EXPECT_TRUE(read->acs);
    EXPECT_FALSE(read->ats);
}

TEST(PciConfiguration, LeavesOutWhatWasCutOff) {
    auto space = ethernet(0x18e);
    space.set(0x100, {0x10, 0, 0x01, 0x18}).set(0x180, {0x0d, 0, 0x01, 0});
    auto bytes = space.bytes();
    auto const whole = parse_pci_configuration(bytes);
    EXPECT_TRUE(whole->acs);
    bytes.resize(0x186);
    EXPECT_FALSE(parse_pci_configuration(bytes)->acs);
}

}  // namespace
}  // namespace vfmgr::checks
