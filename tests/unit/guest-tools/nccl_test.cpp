// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/nccl.hpp"

#include <gtest/gtest.h>

namespace vfmgr::guest::gpu {
namespace {

PciAddress at(char const* text) {
    return PciAddress::parse(text).value();
}

TEST(NcclSettings, AreLinesOfAFileAndTheFirstWordStays) {
    NcclSettings settings{{"NCCL_DEBUG", "INFO"}};
    add_nccl_file(
        "# ours\nNCCL_DEBUG=WARN\n  NCCL_NET_GDR_LEVEL = PHB \r\nPATH=/x\nno word\n"
        "NCCL_TOPO_FILE=/etc/a=b.xml",
        settings);
    EXPECT_EQ(settings, (NcclSettings{{"NCCL_DEBUG", "INFO"},
                                      {"NCCL_NET_GDR_LEVEL", "PHB"},
                                      {"NCCL_TOPO_FILE", "/etc/a=b.xml"}}));
}

TEST(GdrLevel, IsPxbUnlessSomebodySaysOtherwise) {
    auto const level = [](char const* word) {
        return gdr_level(NcclSettings{{"NCCL_NET_GDR_LEVEL", word}});
    };
    EXPECT_EQ(gdr_level({}), PciDistance::pxb);
    EXPECT_EQ(level(""), PciDistance::pxb);
    EXPECT_EQ(level("PIX"), PciDistance::pix);
    EXPECT_EQ(level("SYS"), PciDistance::sys);
    EXPECT_EQ(level("3"), PciDistance::phb);
    EXPECT_EQ(level("12"), PciDistance::sys);
    auto const wrong = level("pix");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().detail, "NCCL knows no NCCL_NET_GDR_LEVEL 'pix' and uses PXB");
}

TEST(GdrLevel, TakesHostBridgesOfOneNodeForOne) {
    EXPECT_TRUE(within(PciDistance::pix, PciDistance::pxb));
    EXPECT_TRUE(within(PciDistance::pxb, PciDistance::pxb));
    EXPECT_FALSE(within(PciDistance::phb, PciDistance::pxb));
    EXPECT_TRUE(within(PciDistance::node, PciDistance::phb));
    EXPECT_FALSE(within(PciDistance::sys, PciDistance::phb));
    EXPECT_TRUE(within(PciDistance::sys, PciDistance::sys));
    EXPECT_TRUE(within(PciDistance::unknown, PciDistance::phb));
    EXPECT_FALSE(within(PciDistance::pix, gdr_level({{"NCCL_NET_GDR_LEVEL", "LOC"}}).value()));
}

// Two GPUs: one shares a switch below a switch with the NIC, the other is of another node.
TEST(TopologyFile, ShowsTheHostsSwitchesAndTheVmsAddresses) {
    std::vector<PciAddress> const first{at("0000:07:01.0"), at("0000:08:00.0"), at("0000:09:02.0"),
                                        at("0000:0d:00.0"), at("0000:0e:00.0")};
    std::vector<PciAddress> const second{at("0000:07:01.0"), at("0000:08:00.0"),
                                         at("0000:09:00.0")};
    std::vector<PlacedFunction> const functions{
        {at("0000:01:00.0"), 0x030200, {at("0000:0f:00.0"), first, 0, 32.0, 16}},
        {at("0000:02:00.0"), 0x020000, {at("0000:0a:00.2"), second, 0, 16.0, 8}},
        {at("0000:03:00.0"), 0x030200, {at("0000:a1:00.0"), {at("0000:a0:01.0")}, 1, {}, {}}}};
    EXPECT_EQ(topology_file(functions, {"00ff", "ff00"}),
              R"(<system version="1">
  <cpu numaid="0" affinity="00ff">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
      <pci busid="ffff:ff:02.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
        <pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      </pci>
      <pci busid="0000:02:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8"/>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00">
    <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
  </cpu>
</system>
)");
}

TEST(TopologyFile, GivesEachNodeAllCpusWhereTheVmHasFewerNodes) {
    std::vector<PlacedFunction> const functions{
        {at("0000:01:00.0"), 0x030200, {at("0000:17:00.0"), {}, 0, {}, {}}},
        {at("0000:02:00.0"), 0x020000, {at("0000:a1:00.0"), {}, 1, {}, {}}}};
    auto const one = topology_file(functions, {"0000ffff"});
    EXPECT_NE(one.find(R"(numaid="1" affinity="0000ffff")"), one.npos);
    auto const three = topology_file(functions, {"00,000000ff", "00,0000ff00", "1f,00000000"});
    EXPECT_NE(three.find(R"(numaid="0" affinity="1f,0000ffff")"), three.npos);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
