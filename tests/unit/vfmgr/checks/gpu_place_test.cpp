// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/gpu_place.hpp"

#include <gtest/gtest.h>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {
namespace {

// A host as sysfs shows it, with names for its functions.
class PciTree {
  public:
    explicit PciTree(std::string const& nodes_with_cpus) {
        facts_.patterns = {"*"};
        if (!nodes_with_cpus.empty())
            facts_.files["/sys/devices/system/node/has_cpu"] = {nodes_with_cpus};
    }
    // `path` begins below /sys/devices: "pci0000:16/0000:16:01.0/0000:17:00.0".
    PciTree& add(std::string const& name, std::string const& path, int node) {
        auto const address = path.substr(path.rfind('/') + 1);
        auto const folder = "/sys/bus/pci/devices/" + address;
        facts_.folders["/sys/bus/pci/devices"].names.push_back(address);
        facts_.links[folder] = {"../../../devices/" + path};
        facts_.files[folder + "/numa_node"] = {std::to_string(node) + "\n"};
        addresses_[name] = PciAddress::parse(address).value();
        return *this;
    }
    [[nodiscard]] std::string operator()(std::string const& one, std::string const& other) const {
        auto const machine = read_machine(facts_);
        auto const* const a = find_pci(machine, addresses_.at(one));
        auto const* const b = find_pci(machine, addresses_.at(other));
        EXPECT_EQ(distance(machine, *b, *a), distance(machine, *a, *b));
        return std::string(enum_name(distance(machine, *a, *b)));
    }

  private:
    Facts facts_;
    std::map<std::string, PciAddress> addresses_;
};

// Two sockets, each slot below a host bridge of its own, as on EPYC; the NICs have two ports.
// ../shared/data (07, asus-epyc) has nvidia-smi topo -m of such a machine.
TEST(PciDistance, OfSlotsWithHostBridgesOfTheirOwn) {
    PciTree host("0-1");
    host.add("gpu0", "pci0000:00/0000:00:01.1/0000:01:00.0", 0)
        .add("gpu1", "pci0000:40/0000:40:01.1/0000:41:00.0", 0)
        .add("gpu2", "pci0000:c0/0000:c0:01.1/0000:c1:00.0", 1)
        .add("nic0", "pci0000:20/0000:20:03.1/0000:21:00.0", 0)
        .add("nic1", "pci0000:20/0000:20:03.1/0000:21:00.1", 0)
        .add("nic2", "pci0000:a0/0000:a0:03.1/0000:a1:00.0", 1);
    EXPECT_EQ(host("gpu0", "gpu1"), "NODE");
    EXPECT_EQ(host("gpu0", "nic0"), "NODE");
    EXPECT_EQ(host("gpu1", "nic1"), "NODE");
    EXPECT_EQ(host("gpu2", "nic2"), "NODE");
    EXPECT_EQ(host("gpu2", "nic0"), "SYS");
    EXPECT_EQ(host("gpu0", "nic2"), "SYS");
    EXPECT_EQ(host("nic0", "nic1"), "PIX");
}

// Eight GPUs, and switches in two levels: each GPU has a switch of its own below the one that it
// shares with its NICs (07, oci-H100: the buses 08 to 0f are divided so).
TEST(PciDistance, OfSwitchesBelowSwitches) {
    PciTree host("0-1");
    std::string const first = "pci0000:07/0000:07:01.0/0000:08:00.0/";
    std::string const second = "pci0000:25/0000:25:01.0/0000:26:00.0/";
    std::string const far = "pci0000:a1/0000:a1:01.0/0000:a2:00.0/";
    host.add("gpu0", first + "0000:09:02.0/0000:0d:00.0/0000:0e:00.0/0000:0f:00.0", 0)
        .add("nic0", first + "0000:09:00.0/0000:0a:00.0/0000:0b:00.0/0000:0c:00.0", 0)
        .add("nic1", first + "0000:09:00.0/0000:0a:00.0/0000:0b:00.0/0000:0c:00.1", 0)
        .add("disk0", first + "0000:09:02.0/0000:0d:00.0/0000:0e:01.0/0000:10:00.0", 0)
        .add("gpu1", second + "0000:27:02.0/0000:2b:00.0/0000:2c:00.0/0000:2d:00.0", 0)
        .add("gpu4", far + "0000:a3:02.0/0000:a7:00.0/0000:a8:00.0/0000:a9:00.0", 1);
    EXPECT_EQ(host("gpu0", "nic0"), "PXB");
    EXPECT_EQ(host("gpu0", "nic1"), "PXB");
    EXPECT_EQ(host("nic0", "nic1"), "PIX");
    EXPECT_EQ(host("gpu0", "disk0"), "PIX");
    EXPECT_EQ(host("gpu1", "nic0"), "NODE");
    EXPECT_EQ(host("gpu4", "nic0"), "SYS");
}

// Two GPUs and a NIC below each of four switches (07, aws-p4d and azure-ndv4); here two of the
// switches have ports of one host bridge.
TEST(PciDistance, OfGpusThatShareASwitchWithTheirNic) {
    PciTree host("0-1");
    std::string const one = "pci0000:10/0000:10:00.0/0000:11:00.0/";
    std::string const two = "pci0000:10/0000:10:02.0/0000:31:00.0/";
    std::string const three = "pci0000:90/0000:90:00.0/0000:91:00.0/";
    host.add("gpu0", one + "0000:12:00.0/0000:13:00.0", 0)
        .add("gpu1", one + "0000:12:04.0/0000:17:00.0", 0)
        .add("nic0", one + "0000:12:08.0/0000:1b:00.0", 0)
        .add("vf0", one + "0000:12:08.0/0000:1b:01.2", 0)
        .add("gpu2", two + "0000:32:00.0/0000:33:00.0", 0)
        .add("gpu4", three + "0000:92:00.0/0000:93:00.0", 1)
        .add("nic2", three + "0000:92:08.0/0000:9b:00.0", 1);
    EXPECT_EQ(host("gpu0", "nic0"), "PIX");
    EXPECT_EQ(host("gpu1", "nic0"), "PIX");
    EXPECT_EQ(host("gpu0", "vf0"), "PIX");
    EXPECT_EQ(host("gpu4", "nic2"), "PIX");
    EXPECT_EQ(host("gpu2", "nic0"), "PHB");
    EXPECT_EQ(host("gpu4", "nic0"), "SYS");
}

// A card with a switch of its own, with its GPU below; the NIC's function is beside the switch.
TEST(PciDistance, OfACardWithASwitchOfItsOwn) {
    PciTree host("0");
    std::string const card = "pci0005:00/0005:00:00.0/0005:01:00.0/";
    host.add("gpu", card + "0005:02:01.0/0005:05:00.0/0005:06:00.0/0005:07:00.0", 0)
        .add("nic", card + "0005:02:00.0/0005:03:00.0", 0)
        .add("function", "pci0005:00/0005:00:00.0/0005:01:00.1", 0)
        .add("below", card + "0005:02:02.0/0005:08:00.0", 0);
    EXPECT_EQ(host("gpu", "nic"), "PXB");
    EXPECT_EQ(host("function", "below"), "PIX");
    EXPECT_EQ(host("function", "nic"), "PIX");
}

// Each GPU and each NIC below a root port that has a PCI domain of its own (07, lspci-gb200).
TEST(PciDistance, OfDomains) {
    PciTree host("0-1");
    host.add("gpu0", "pci0008:00/0008:00:00.0/0008:01:00.0", 0)
        .add("gpu2", "pci0018:00/0018:00:00.0/0018:01:00.0", 1)
        .add("nic0", "pci0000:00/0000:00:00.0/0000:01:00.0", 0)
        .add("nic2", "pci0010:00/0010:00:00.0/0010:01:00.0", 1);
    EXPECT_EQ(host("gpu0", "nic0"), "NODE");
    EXPECT_EQ(host("gpu2", "nic2"), "NODE");
    EXPECT_EQ(host("gpu0", "nic2"), "SYS");
}

// On POWER9 a GPU's node is its memory; there, and without nodes, the distance is unknown.
TEST(PciDistance, IsUnknownWithoutNodesOfCpus) {
    PciTree power("0,8");
    power.add("gpu", "pci0004:00/0004:00:00.0/0004:01:00.0/0004:02:02.0/0004:05:00.0", 255)
        .add("nic", "pci0003:00/0003:00:00.0/0003:01:00.0", 0);
    EXPECT_EQ(power("gpu", "nic"), "unknown");
    PciTree small("");
    small.add("gpu", "pci0000:16/0000:16:01.0/0000:17:00.0", -1)
        .add("nic", "pci0000:38/0000:38:01.0/0000:39:00.0", -1);
    EXPECT_EQ(small("gpu", "nic"), "unknown");
}

// CentOS 7's kernel (3.10) lists no node with CPUs at all (04, hwloc-cascadelake); older ones end
// the list with a byte of 0 (04, hwloc-sandybridge).
TEST(PciDistance, IsToldByOlderKernelsListsOfNodes) {
    using std::string_literals::operator""s;
    for (auto const& with_cpus : {"\n"s, "\n\0"s, "0-1\n\0"s, "0,1\n\0"s}) {
        PciTree host(with_cpus);
        host.add("gpu", "pci0000:16/0000:16:00.0/0000:17:00.0", 0)
            .add("near", "pci0000:39/0000:39:00.0/0000:3a:00.0", 0)
            .add("far", "pci0000:ae/0000:ae:00.0/0000:af:00.0", 1);
        EXPECT_EQ(host("gpu", "near"), "NODE") << with_cpus;
        EXPECT_EQ(host("gpu", "far"), "SYS") << with_cpus;
    }
    PciTree memory("0-1\n\0"s);
    memory.add("gpu", "pci0000:16/0000:16:00.0/0000:17:00.0", 2)
        .add("nic", "pci0000:39/0000:39:00.0/0000:3a:00.0", 1);
    EXPECT_EQ(memory("gpu", "nic"), "unknown");
}

// A VM's root ports are one host bridge's, whatever the host has; or there are none.
TEST(PciDistance, InAVmIsTheVirtualTrees) {
    PciTree vm("0");
    vm.add("gpu", "pci0000:00/0000:00:02.0/0000:01:00.0", -1)
        .add("vf", "pci0000:00/0000:00:02.1/0000:02:00.0", -1)
        .add("flat", "pci0000:00/0000:00:06.0", -1);
    EXPECT_EQ(vm("gpu", "vf"), "PHB");
    EXPECT_EQ(vm("gpu", "flat"), "PHB");
}

}  // namespace
}  // namespace vfmgr::checks
