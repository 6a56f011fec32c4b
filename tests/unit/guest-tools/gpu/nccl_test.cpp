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
    EXPECT_EQ(wrong.error().detail, "NCCL does not know NCCL_NET_GDR_LEVEL 'pix' and uses PXB");
}

TEST(GdrLevel, IsTheFarthest) {
    EXPECT_TRUE(within(PciDistance::pix, PciDistance::pxb));
    EXPECT_TRUE(within(PciDistance::pxb, PciDistance::pxb));
    EXPECT_FALSE(within(PciDistance::phb, PciDistance::pxb));
    EXPECT_FALSE(within(PciDistance::sys, PciDistance::phb));
    EXPECT_TRUE(within(PciDistance::sys, PciDistance::sys));
    EXPECT_FALSE(within(PciDistance::pix, gdr_level({{"NCCL_NET_GDR_LEVEL", "LOC"}}).value()));
}

TEST(NcclDistance, HasOneCpuForANodeAndOneForWhatHasNone) {
    auto const between = [](std::optional<int> one, std::optional<int> other) {
        PciPlace const gpu{at("0000:17:00.0"), {{at("0000:16:01.0")}}, one, {}, {}};
        PciPlace const nic{at("0000:a1:00.0"), {{at("0000:a0:01.0")}}, other, {}, {}};
        return nccl_distance(gpu, nic);
    };
    EXPECT_EQ(between(0, 0), PciDistance::phb);
    EXPECT_EQ(between(0, 1), PciDistance::sys);
    EXPECT_EQ(between({}, {}), PciDistance::phb);
    EXPECT_EQ(between(0, {}), PciDistance::sys);
    EXPECT_EQ(
        nccl_distance({at("0000:00:02.0"), {}, 0, {}, {}}, {at("0000:00:03.0"), {}, 0, {}, {}}),
        PciDistance::phb);
}

// A Broadcom PCI Express switch, given by its upper port.
PciPort pex(char const* address, unsigned device, unsigned subsystem_device) {
    return {at(address), 0x1000, static_cast<std::uint16_t>(device), 0x1000,
            static_cast<std::uint16_t>(subsystem_device)};
}

// The host's tree has a GPU and a NIC below a switch each, both below a third switch.
struct TwoLevels : testing::Test {
    static PciDistance between(PciPort const& above, PciPort const& of_gpu, PciPort const& of_nic) {
        PciPort const root{at("0000:00:01.0")};
        PciPlace const gpu{at("0000:0f:00.0"),
                           {root, above, {at("0000:09:00.0")}, of_gpu, {at("0000:0e:00.0")}},
                           0,
                           {},
                           {}};
        PciPlace const nic{at("0000:0c:00.0"),
                           {root, above, {at("0000:09:02.0")}, of_nic, {at("0000:0b:00.0")}},
                           0,
                           {},
                           {}};
        EXPECT_EQ(distance(gpu, nic), PciDistance::pxb);
        EXPECT_EQ(nccl_distance(nic, gpu), nccl_distance(gpu, nic));
        return nccl_distance(gpu, nic);
    }
};

TEST_F(TwoLevels, OfOnePartAreOneSwitchToNccl) {
    EXPECT_EQ(between(pex("0000:08:00.0", 0xc030, 0x0072), pex("0000:0d:00.0", 0xc030, 0x1003),
                      pex("0000:0a:00.0", 0xc030, 0x1003)),
              PciDistance::pix);
    EXPECT_EQ(between(pex("0000:08:00.0", 0xc010, 0xa096), pex("0000:0d:00.0", 0xc010, 0xa096),
                      pex("0000:0a:00.0", 0xc010, 0xa064)),
              PciDistance::pix);
}

TEST_F(TwoLevels, OfOtherSwitchesAreTwo) {
    auto const upper = pex("0000:08:00.0", 0xc030, 0x0072);
    auto const lower = pex("0000:0d:00.0", 0xc030, 0x1003);
    EXPECT_EQ(between({at("0000:08:00.0")}, {at("0000:0d:00.0")}, {at("0000:0a:00.0")}),
              PciDistance::pxb)
        << "nobody tells their ids";
    EXPECT_EQ(between(upper, lower, pex("0000:0a:00.0", 0xc010, 0xa096)), PciDistance::pxb)
        << "the NIC's is of another generation";
    EXPECT_EQ(between(upper, upper, upper), PciDistance::pxb) << "upper levels all of them";
    EXPECT_EQ(between(lower, lower, lower), PciDistance::pxb) << "lower levels all of them";
    auto other = upper;
    other.subsystem_vendor = 0x1028;
    EXPECT_EQ(between(other, lower, lower), PciDistance::pxb) << "a part by another maker";
}

// Below a two-level switch there is another such: NCCL merges each with its own, no more.
TEST_F(TwoLevels, AreNotMoreThanTwo) {
    auto const place = [](char const* address, char const* port) {
        auto const fourth = [](char const* upper) { return pex(upper, 0xc010, 0xa096); };
        return PciPlace{at(address),
                        {{at("0000:00:01.0")},
                         fourth("0000:01:00.0"),
                         {at("0000:02:00.0")},
                         fourth("0000:03:00.0"),
                         {at("0000:04:00.0")},
                         fourth("0000:05:00.0"),
                         {at(port)}},
                        0,
                        {},
                        {}};
    };
    auto deep = place("0000:07:00.0", "0000:06:00.0");
    EXPECT_EQ(nccl_distance(deep, place("0000:08:00.0", "0000:06:01.0")), PciDistance::pix);
    auto high = deep;
    high.above.resize(2);
    high.above.push_back({at("0000:02:01.0")});
    EXPECT_EQ(nccl_distance(deep, high), PciDistance::pxb);
}

// Puts "(ids)" for those of the one switch that has some.
std::string without_ids(std::string file) {
    std::string const ids =
        R"(vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0072")";
    if (auto const begin = file.find(ids); begin != file.npos)
        file.replace(begin, ids.size(), "(ids)");
    return file;
}

// Two GPUs: one shares a switch below a switch with the NIC, the other is on another node.
TEST(TopologyFile, ShowsTheHostsSwitchesAndTheVmsAddresses) {
    auto const upper = pex("0000:08:00.0", 0xc030, 0x0072);
    std::vector<PciPort> const first{{at("0000:07:01.0")},
                                     upper,
                                     {at("0000:09:02.0")},
                                     {at("0000:0d:00.0")},
                                     {at("0000:0e:00.0")}};
    std::vector<PciPort> const second{{at("0000:07:01.0")}, upper, {at("0000:09:00.0")}};
    std::vector<PlacedFunction> const functions{
        {at("0000:01:00.0"), 0x030200, {at("0000:0f:00.0"), first, 0, 32.0, 16}},
        {at("0000:02:00.0"), 0x020000, {at("0000:0a:00.2"), second, 0, 16.0, 8}},
        {at("0000:03:00.0"), 0x030200, {at("0000:a1:00.0"), {{at("0000:a0:01.0")}}, 1, {}, {}}}};
    EXPECT_EQ(without_ids(topology_file(functions, {"00ff", "ff00"})),
              R"(<system version="1">
  <cpu numaid="0" affinity="00ff">
    <pci busid="ffff:ff:01.0" class="0x060400" (ids) link_speed="16.0 GT/s PCIe" link_width="8">
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

TEST(TopologyFile, HasACpuForWhatNobodyTellsTheNodeOf) {
    std::vector<PlacedFunction> const functions{
        {at("0000:01:00.0"), 0x030200, {at("0000:17:00.0"), {}, {}, {}, {}}},
        {at("0000:02:00.0"), 0x020000, {at("0000:a1:00.0"), {}, 3, {}, {}}},
        {at("0000:03:00.0"), 0x030200, {at("0000:c1:00.0"), {}, {}, {}, {}}}};
    std::string const link = R"(link_speed="16.0 GT/s PCIe" link_width="16"/>)";
    EXPECT_EQ(topology_file(functions, {"0f"}), R"(<system version="1">
  <cpu numaid="0" affinity="0f">
    <pci busid="0000:02:00.0" class="0x020000" )" + link +
                                                    R"(
  </cpu>
  <cpu numaid="1" affinity="0f">
    <pci busid="0000:01:00.0" class="0x030200" )" + link +
                                                    R"(
    <pci busid="0000:03:00.0" class="0x030200" )" + link +
                                                    R"(
  </cpu>
</system>
)");
    auto const two = topology_file({functions[0], functions[1]}, {"0f", "f0"});
    EXPECT_NE(two.find(R"(numaid="0" affinity="ff")"), two.npos) << two;
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
