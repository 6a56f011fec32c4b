// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/places.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/machine/configuration_space.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

PciAddress function_of(char const* text) {
    return PciAddress::parse(text).value();
}

// A GPU and a PF below the ports of one switch, and another function.
struct Places : testing::Test {
    test::TemporaryFolder folder;
    LinuxKernelRoots roots;
    std::string const ports = "pci0000:16/0000:16:01.0/0000:17:00.0";

    Places() {
        roots.sysfs = folder.path() / "sys";
        write(roots.sysfs / "devices/system/node/has_cpu", "0-1");
        add(ports + "/0000:18:01.0/0000:1c:00.0", "0x020000");
        write(device(ports + "/0000:18:01.0/0000:1c:00.0") / "sriov_totalvfs", "8");
        add("pci0000:30/0000:30:01.0/0000:31:00.0", "0x010802");
    }
    static void write(fs::path const& file, std::string const& text) {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    }
    fs::path device(std::string const& path) const { return roots.sysfs / "devices" / path; }
    void add(std::string const& path, char const* class_code) const {
        write(device(path) / "vendor", "0x10de");
        write(device(path) / "device", "0x2330");
        write(device(path) / "class", class_code);
        write(device(path) / "numa_node", "1");
        auto const links = roots.sysfs / "bus/pci/devices";
        fs::create_directories(links);
        fs::create_symlink("../../../devices/" + path, links / device(path).filename());
    }
    void add_gpu() const { add(ports + "/0000:18:00.0/0000:19:00.0", "0x030200"); }
    // A port with ACS: `control` is its ACS Control Register.
    void add_port(std::string const& path, std::uint8_t kind, std::uint8_t control) const {
        add(path, "0x060400");
        checks::ConfigurationSpace space(4096);
        space.set(0x00, {0x00, 0x10, 0x30, 0xc0, 0, 0, 0x10, 0, 0, 0, 4, 6, 0, 0, 1});
        space.set(0x34, {0x40});
        space.set(0x40, {0x10, 0, kind * 16 + 2, 0});
        space.set(0x100, {0x0d, 0, 1, 0, 0x5f, 0, control, 0});
        std::ofstream(device(path) / "config", std::ios::binary) << space.bytes();
    }
};

TEST_F(Places, AreNotLookedForWithoutAGpu) {
    EXPECT_EQ(read_places(roots), HostPlaces{});
}

TEST_F(Places, AreThoseOfGpusAndPfs) {
    add_gpu();
    auto const places = read_places(roots);
    ASSERT_EQ(places.gpus.size(), 1U);
    ASSERT_EQ(places.pfs.size(), 1U);
    EXPECT_EQ(places.gpus[0].address, function_of("0000:19:00.0"));
    EXPECT_EQ(places.gpus[0].numa_node, 1);
    EXPECT_EQ(places.pfs[0].address, function_of("0000:1c:00.0"));
    EXPECT_EQ(distance(places.gpus[0], places.pfs[0]), PciDistance::pix);
}

TEST_F(Places, NamePortsOfSwitchesWhoseAcsRedirects) {
    add_gpu();
    add_port(ports.substr(0, ports.rfind('/')), 4, 0x1d);  // a root port
    add_port(ports, 5, 0);                                 // the switch's upper port
    add_port(ports + "/0000:18:00.0", 6, 0x1d);
    add_port(ports + "/0000:18:01.0", 6, 0x01);
    auto const places = read_places(roots);
    EXPECT_THAT(places.redirecting, ElementsAre(function_of("0000:18:00.0")));
    EXPECT_THAT(places.unread, IsEmpty());
}

// As for anybody but root: 64 bytes.
TEST_F(Places, NamePortsThatCouldNotBeRead) {
    add_gpu();
    add_port(ports + "/0000:18:00.0", 6, 0x1d);
    fs::resize_file(device(ports + "/0000:18:00.0") / "config", 64);
    auto const places = read_places(roots);
    EXPECT_THAT(places.redirecting, IsEmpty());
    EXPECT_THAT(places.unread, testing::Contains(function_of("0000:18:00.0")));
}

TEST_F(Places, AreReadAgainWhenAFunctionComes) {
    PlaceBook book;
    EXPECT_EQ(book.look_up(roots), HostPlaces{});
    add_gpu();
    EXPECT_EQ(book.look_up(roots).gpus.size(), 1U);
    write(device(ports + "/0000:18:00.0/0000:19:00.0") / "numa_node", "0");
    EXPECT_EQ(book.look_up(roots).gpus.at(0).numa_node, 1) << "it is remembered";
}

}  // namespace
}  // namespace vfmgr
