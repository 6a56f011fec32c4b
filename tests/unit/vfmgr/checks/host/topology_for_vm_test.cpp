// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/topology_for_vm.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/machine/configuration_space.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr::checks {
namespace {

namespace fs = std::filesystem;

PciAddress at(char const* text) {
    return PciAddress::parse(text).value();
}

// A PF with a VF below a switch, and another function that belongs to no VM.
struct TopologyForVm : testing::Test {
    vfmgr::test::TemporaryFolder folder;

    TopologyForVm() {
        add("pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:1c:00.0", "32.0 GT/s PCIe");
        add("pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:1c:00.2", "Unknown");
        add("pci0000:30/0000:30:01.0/0000:31:00.0", "16.0 GT/s PCIe");
        fs::create_symlink("../0000:1c:00.0", root() / "bus/pci/devices/0000:1c:00.2/physfn");
        fs::create_directories(root() / "kernel/iommu_groups/17");
        write(root() / "devices/system/node/has_cpu", "0-1");
    }
    fs::path root() const { return folder.path() / "sys"; }
    static void write(fs::path const& file, std::string const& text) {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    }
    void add(std::string const& path, char const* speed) {
        auto const device = root() / "devices" / path;
        write(device / "vendor", "0x15b3");
        write(device / "device", "0x101e");
        write(device / "class", "0x020000");
        write(device / "numa_node", "1");
        write(device / "current_link_speed", speed);
        write(device / "current_link_width", std::string_view(speed) == "Unknown" ? "0" : "16");
        auto const devices = root() / "bus/pci/devices";
        fs::create_directories(devices);
        fs::create_symlink("../../../devices/" + path, devices / device.filename());
    }
    HostTopology told_of(std::vector<VmHostdev> const& given) const {
        std::vector<PciAddress> functions;
        for (auto const& one : given) functions.push_back(one.pci);
        auto const facts = collect_places(folder.path().string(), functions);
        return topology_for_vm(read_machine(facts), given);
    }
};

TEST_F(TopologyForVm, IsAVfsPlaceAndItsPfsLink) {
    auto const told = told_of({{at("0000:1c:00.2"), "ua-vfmgr-3f9c2b1d", "00/02.1/00.0"}});
    ASSERT_EQ(told.functions.size(), 1U);
    auto const& vf = told.functions[0];
    EXPECT_EQ(vf.in_guest, "00/02.1/00.0");
    EXPECT_EQ(vf.vendor, 0x15b3);
    EXPECT_EQ(vf.host.address, at("0000:1c:00.2"));
    EXPECT_EQ(
        vf.host.above,
        (std::vector<PciPort>{{at("0000:16:01.0")}, {at("0000:17:00.0")}, {at("0000:18:00.0")}}));
    EXPECT_EQ(vf.host.numa_node, 1);
    EXPECT_EQ(vf.host.speed_gts, 32.0);
    EXPECT_EQ(vf.host.width, 16U);
}

TEST_F(TopologyForVm, ReadsNothingOfFunctionsThatOthersHave) {
    auto const facts = collect_places(folder.path().string(), {at("0000:1c:00.2")});
    for (auto const& [path, unused] : facts.files)
        EXPECT_EQ(path.find("0000:31:00.0"), path.npos) << path;
}

TEST_F(TopologyForVm, TellsWhatPortsTheWayHas) {
    auto const way = std::string("pci0000:16/0000:16:01.0/0000:17:00.0");
    add(way, "32.0 GT/s PCIe");
    auto const port = root() / "devices" / way;
    write(port / "vendor", "0x1000");
    write(port / "device", "0xc030");
    write(port / "subsystem_vendor", "0x1028");
    write(port / "subsystem_device", "0x0072");
    auto const told = told_of({{at("0000:1c:00.2"), std::nullopt, "00/02.1/00.0"}});
    ASSERT_EQ(told.functions.size(), 1U);
    EXPECT_EQ(told.functions[0].host.above.at(1),
              (PciPort{at("0000:17:00.0"), 0x1000, 0xc030, 0x1028, 0x0072}));
}

// A root port that could isolate devices, and does not.
TEST_F(TopologyForVm, NotesWhatTheHostsPortsDo) {
    auto const vf = VmHostdev{at("0000:1c:00.2"), std::nullopt, "00/02.1/00.0"};
    EXPECT_TRUE(told_of({vf}).notes.empty());
    add("pci0000:16/0000:16:01.0", "32.0 GT/s PCIe");
    auto const port = root() / "devices/pci0000:16/0000:16:01.0";
    write(port / "class", "0x060400");
    ConfigurationSpace space(4096);
    space.set(0x00, {0x86, 0x80, 0x20, 0x35, 0, 0, 0x10, 0, 0, 0, 4, 6, 0, 0, 1});
    space.set(0x34, {0x40});
    space.set(0x40, {0x10, 0, 0x42, 0});               // PCI Express, a root port
    space.set(0x100, {0x0d, 0, 1, 0, 0x1d, 0, 0, 0});  // ACS: capable, and off
    std::ofstream(port / "config", std::ios::binary) << space.bytes();
    auto const notes = told_of({vf}).notes;
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("0000:16:01.0: this port, above 0000:1c:00.2"), std::string::npos)
        << notes[0];
}

TEST_F(TopologyForVm, LeavesOutWhatIsNotPlacedOrNotThere) {
    EXPECT_TRUE(told_of({}).functions.empty());
    EXPECT_TRUE(told_of({{at("0000:1c:00.2"), std::nullopt, std::nullopt}}).functions.empty());
    EXPECT_TRUE(told_of({{at("0000:7f:00.0"), std::nullopt, "00/03.0"}}).functions.empty());
}

}  // namespace
}  // namespace vfmgr::checks
