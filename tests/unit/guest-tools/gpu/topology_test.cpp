// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr::guest::gpu {
namespace {

using testing::HasSubstr;

PciAddress pci_at(char const* text) {
    return PciAddress::parse(text).value();
}

// A VM with a GPU and a VF below root ports of its own; on the host both are below one switch.
struct GpuTopology : testing::Test {
    checks::Facts facts;
    HostTopology told;
    std::vector<GpuInfo> gpus;

    GpuTopology() {
        facts.machine = CheckedMachine::guest;
        facts.patterns = {"*"};
        add("0000:01:00.0", "0000:00:02.0", "0x10de", "0x030200");
        add("0000:04:00.0", "0000:00:02.1", "0x15b3", "0x020000");
        std::vector<PciPort> const port{{pci_at("0000:16:01.0")}, {pci_at("0000:17:00.0")}};
        told.functions = {
            {"00/02.0/00.0", 0x10de, 0x2335, {pci_at("0000:1b:00.0"), port, 0, 32.0, 16}},
            {"00/02.1/00.0", 0x15b3, 0x101e, {pci_at("0000:1c:00.2"), port, 0, 32.0, 16}}};
        told.functions[0].host.above.push_back({pci_at("0000:18:00.0")});
        told.functions[1].host.above.push_back({pci_at("0000:18:01.0")});
        GpuInfo gpu;
        gpu.pci = pci_at("0000:01:00.0");
        gpu.route = GpuRoute::dma_buf;
        gpus = {gpu};
    }
    void add(std::string const& address, std::string const& port, char const* vendor,
             char const* class_code) {
        auto const folder = "/sys/bus/pci/devices/" + address;
        facts.folders["/sys/bus/pci/devices"].names.push_back(address);
        facts.links[folder] = {"../../../devices/pci0000:00/" + port + "/" + address};
        facts.files[folder + "/vendor"] = {std::string(vendor) + "\n"};
        facts.files[folder + "/class"] = {std::string(class_code) + "\n"};
        facts.files[folder + "/numa_node"] = {"-1\n"};
    }
    GpuNicPair only(NcclState const& nccl = {}, bool is_told = true) {
        auto const pairs = judge(checks::read_machine(facts), gpus,
                                 is_told ? std::optional(told) : std::nullopt, nccl);
        EXPECT_EQ(pairs.size(), 1U);
        return pairs.empty() ? GpuNicPair() : pairs.front();
    }
};

TEST_F(GpuTopology, IsTheHostsWhileNcclSeesTheVms) {
    auto const pair = only();
    EXPECT_EQ(pair.gpu, pci_at("0000:01:00.0"));
    EXPECT_EQ(pair.nic, pci_at("0000:04:00.0"));
    EXPECT_EQ(pair.here, PciDistance::phb);
    EXPECT_EQ(pair.on_host, PciDistance::pix);
    EXPECT_FALSE(pair.nccl_uses_gpudirect);
    EXPECT_EQ(pair.because, "PHB is beyond its default limit, PXB");
    EXPECT_THAT(pair.remedy, HasSubstr("vf-guest gpu topology --write"));
}

TEST_F(GpuTopology, IsWhatNcclReadsInAFile) {
    NcclState nccl{{}, "/etc/nccl-topology.xml", true};
    EXPECT_TRUE(only(nccl).nccl_uses_gpudirect);
    EXPECT_EQ(only(nccl).because,
              "PIX is within its default limit, PXB, by /etc/nccl-topology.xml");
    EXPECT_EQ(only(nccl).remedy, "");
    nccl.file_is_current = false;
    EXPECT_FALSE(only(nccl).nccl_uses_gpudirect);
    EXPECT_THAT(only(nccl).because, HasSubstr("may differ"));
}

// As on hosts with a PEX89104: `nvidia-smi topo` prints PXB there.
TEST_F(GpuTopology, HasTwoLevelsOfASwitchForOneAsNcclDoes) {
    for (auto& function : told.functions) {
        auto& above = function.host.above;
        above[1] = {above[1].address, 0x1000, 0xc030, 0x1000, 0x0072};
        auto const bus = function.host.address.bus;
        above.push_back(
            {PciAddress{0, static_cast<std::uint8_t>(bus - 10)}, 0x1000, 0xc030, 0x1000, 0x1003});
        above.push_back({PciAddress{0, static_cast<std::uint8_t>(bus - 5)}});
    }
    NcclState nccl{{{"NCCL_NET_GDR_LEVEL", "PIX"}}, "/etc/nccl-topology.xml", true};
    EXPECT_EQ(only(nccl).on_host, PciDistance::pxb);
    EXPECT_TRUE(only(nccl).nccl_uses_gpudirect);
    EXPECT_EQ(only(nccl).because,
              "PIX, because NCCL counts two levels of a switch as one, is within "
              "NCCL_NET_GDR_LEVEL, PIX, by /etc/nccl-topology.xml");
    nccl.file_is_current = false;
    EXPECT_THAT(only(nccl).remedy, HasSubstr("vf-guest gpu topology --write"));
    told.functions[0].host.above[1].subsystem_vendor = 0x1028;
    nccl.file_is_current = true;
    EXPECT_FALSE(only(nccl).nccl_uses_gpudirect);
}

TEST_F(GpuTopology, MayBeFartherThanAFileHelps) {
    told.functions[0].host.above = {{pci_at("0000:a0:01.0")}};
    told.functions[0].host.numa_node = 1;
    auto const pair = only();
    EXPECT_EQ(pair.on_host, PciDistance::sys);
    EXPECT_THAT(pair.remedy, HasSubstr("NCCL_NET_GDR_LEVEL=SYS"));
    EXPECT_TRUE(only({{{"NCCL_NET_GDR_LEVEL", "SYS"}}, "", false}).nccl_uses_gpudirect);
}

TEST_F(GpuTopology, IsInNcclsWordsWhereThatDecides) {
    NcclState nccl{{{"NCCL_NET_GDR_LEVEL", "PHB"}}, "/etc/nccl-topology.xml", true};
    told.functions[0].host.above = {{pci_at("0000:a0:01.0")}};
    EXPECT_EQ(only(nccl).on_host, PciDistance::node);
    EXPECT_TRUE(only(nccl).nccl_uses_gpudirect);
    EXPECT_THAT(
        only(nccl).because,
        HasSubstr("PHB, which NCCL calls all of one NUMA node, is within NCCL_NET_GDR_LEVEL"));
    told.functions[0].host.numa_node.reset();
    EXPECT_EQ(only(nccl).on_host, PciDistance::unknown);
    EXPECT_FALSE(only(nccl).nccl_uses_gpudirect);
    EXPECT_THAT(only(nccl).because,
                HasSubstr("SYS, because the NUMA nodes are unknown, is beyond"));
    EXPECT_THAT(only(nccl).remedy, HasSubstr("NCCL_NET_GDR_LEVEL=SYS"));
}

TEST_F(GpuTopology, IsUnknownWhereTheHostDoesNotTell) {
    auto const pair = only({}, false);
    EXPECT_EQ(pair.on_host, std::nullopt);
    EXPECT_THAT(pair.remedy, HasSubstr("vfmgrd on the host"));
    told.functions[1].in_guest = "00/02.2/00.0";
    EXPECT_EQ(only().on_host, std::nullopt) << "the host tells of another function";
}

TEST_F(GpuTopology, MattersOnlyToAGpuThatOffersGpudirect) {
    gpus[0].route = GpuRoute::not_offered;
    gpus[0].detail = "this GPU does not offer GPUDirect RDMA";
    auto const pair = only({{{"NCCL_NET_GDR_LEVEL", "SYS"}}, "", false});
    EXPECT_FALSE(pair.nccl_uses_gpudirect);
    EXPECT_EQ(pair.because, gpus[0].detail);
}

TEST_F(GpuTopology, NamesALevelThatNcclDoesNotKnow) {
    auto const pair = only({{{"NCCL_NET_GDR_LEVEL", "far"}}, "", false});
    EXPECT_FALSE(pair.nccl_uses_gpudirect);
    EXPECT_THAT(pair.because, HasSubstr("NCCL does not know NCCL_NET_GDR_LEVEL 'far'"));
}

TEST_F(GpuTopology, PlacesGpusAndNicsThatTheHostToldOf) {
    told.functions.push_back({"00/1f.0", 0x8086, 0x2918, {}});
    auto const functions = placed(checks::read_machine(facts), told);
    ASSERT_EQ(functions.size(), 2U);
    EXPECT_EQ(functions[0].here, pci_at("0000:01:00.0"));
    EXPECT_EQ(functions[0].host.address, pci_at("0000:1b:00.0"));
    EXPECT_EQ(functions[1].class_code, 0x020000U);
}

TEST(PathHere, IsSlotsFromTheRootDown) {
    EXPECT_EQ(path_here("../../../devices/pci0000:00/0000:00:02.1/0000:03:00.0"), "00/02.1/00.0");
    EXPECT_EQ(path_here("../../../devices/pci0000:fe/0000:fe:00.0/0000:ff:00.3"), "fe/00.0/00.3");
    EXPECT_EQ(path_here("../../../devices/pci0000:00/0000:00:06.0"), "00/06.0");
    EXPECT_EQ(path_here("../../../devices/virtual"), std::nullopt);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
