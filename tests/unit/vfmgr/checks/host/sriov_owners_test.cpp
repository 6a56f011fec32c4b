// SPDX-License-Identifier: Apache-2.0
// Covers the languages of configuration files; bundles/cases/owners.json has the findings.
#include "vfmgr/checks/host/sriov_owners.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace vfmgr::checks {
namespace {

struct Written {
    char const* path;
    char const* text;
    char const* does;  // "": not an owner
    DeviceSelector of;
};

std::size_t line_of(std::string_view text, std::size_t at) {
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

class OwnerFile : public testing::TestWithParam<Written> {};

TEST_P(OwnerFile, IsRead) {
    auto const& [path, text, does, of] = GetParam();
    auto const owners = parse_sriov_owners(path, text);
    if (std::string_view(does).empty()) {
        EXPECT_TRUE(owners.empty()) << owners[0].line;
        return;
    }
    ASSERT_EQ(owners.size(), 1U);
    EXPECT_EQ(owners[0].does, does);
    EXPECT_EQ(owners[0].of, of);
    auto const at = std::string_view(text).find(owners[0].line);
    ASSERT_NE(at, std::string_view::npos);
    EXPECT_EQ(owners[0].line_number, line_of(text, at));
}

DeviceSelector netdev(std::string name) {
    return {{std::move(name)}, {}, {}, {}, {}};
}

INSTANTIATE_TEST_SUITE_P(
    All, OwnerFile,
    testing::Values(
        Written{"/etc/systemd/network/a.link",
                "[Match]\nMACAddress=02:00:00:00:00:01\nOriginalName=ens1 ens2*\n[Link]\n"
                "SR-IOVVirtualFunctions = 8\n[SR-IOV]\nVirtualFunction=0\n",
                "makes 8 VFs",
                {{"ens1", "ens2*"}, {"02:00:00:00:00:01"}, {}, {}, {}}},
        Written{"/etc/systemd/network/a.network",
                "; a note\n[Match]\nName=!ens1\n[SR-IOV]\n",
                "sets VFs up",
                {}},
        Written{
            "/etc/systemd/network/a.network", "[Match]\nName=ens1\n[Network]\nDHCP=yes\n", "", {}},
        Written{"/etc/systemd/network/a.link",
                "[Match]\nPath=pci-0000:01:00.0\n[Network]\nSR-IOVVirtualFunctions=2\n[SR-IOV]\n",
                "sets VFs up",
                {{}, {}, {}, {"0000:01:00.0"}, {}}},
        Written{"/etc/NetworkManager/system-connections/a", "id=a\ninterface-name=ens1\n", "", {}},
        Written{"/etc/NetworkManager/system-connections/a",
                "id=a\n[sriov]\ntotal-vfs=0\n",
                "makes 0 VFs",
                {}},
        Written{"/etc/NetworkManager/system-connections/a",
                "\nid=a\n\n\nmac-address=02:00:00:00:00:01\n[sriov]\n",
                "sets VFs up",
                {{}, {"02:00:00:00:00:01"}, {}, {}, {}}},
        Written{"/etc/systemd/network/a.link.d/b.conf",
                "[Link]\nSR-IOVVirtualFunctions=2\n",
                "makes 2 VFs",
                {}},
        Written{"/etc/sriov-operator/sriov-interface-config.yaml",
                "spec:\n  interfaces:\n  - name: ens1\n    numvfs: 3\n"
                "  - name: ens2\n    numvfs: 4\n    externallymanaged: true\n"
                "  bridges:\n    ovs:\n    - name: br\n      numvfs: 1\n",
                "makes 3 VFs", netdev("ens1")},
        Written{"/etc/sriov-operator/pci/a",
                "{\n  \"name\": \"ens1\",\n  \"pciAddress\": \"0000:01:00.0\",\n"
                "  \"numVfs\": 3\n}\n",
                "makes 3 VFs",
                {{}, {}, {}, {"0000:01:00.0"}, {}}},
        Written{"/etc/sriov-operator/pci/a", "{\"numVfs\": -1}", "", {}},
        Written{"/etc/sriov-operator/pci/a", "\"numVfs\"", "", {}},
        Written{"/etc/sysconfig/network-scripts/ifcfg-a", "DEVICE=\"ens1\"\nSRIOV_VF0=\"\"\n",
                "sets VFs up", netdev("ens1")},
        Written{"/etc/netplan/a.yaml",
                "network:\n    ethernets:\n        lan:\n            match:\n"
                "                macaddress: \"02:00:00:00:00:01\"\n            mtu: 9000\n"
                "            virtual-function-count: '4'\n",
                "makes 4 VFs",
                {{}, {"02:00:00:00:00:01"}, {}, {}, {}}},
        Written{"/etc/netplan/a.yaml",
                "network:\n  ethernets:\n    ens1:\n      virtual-function-count: 2\n    vf0:\n"
                "      link: ens1\n",
                "makes 2 VFs", netdev("ens1")},
        Written{"/etc/netplan/a.yaml",
                "network:\n  ethernets:\n    ens1:\n      embedded-switch-mode: \"switchdev\"\n",
                "sets VFs up", netdev("ens1")},
        Written{"/etc/netplan/a.yaml",
                "network:\n  ethernets:\n    ens1:\n      nameservers:\n        link: ens2\n"
                "  bonds:\n    bond0:\n      virtual-function-count: x\n",
                "makes VFs",
                {}},
        Written{"/etc/modprobe.d/a.conf",
                "  options mlx4_core port_type_array=2,2 num_vfs=4\n",
                "makes VFs, num_vfs=4",
                {{}, {}, {"mlx4_core"}, {}, {}}},
        Written{"/etc/modprobe.d/a.conf",
                "options vfio-pci ids=15b3:101e\nblacklist num_vfs=1\n",
                "",
                {}},
        Written{"/etc/udev/rules.d/a.rules",
                "KERNELS==\"0000:01:00.0\", NAME==\"x\", ATTR{device/sriov_numvfs}=\"2\"\n",
                "writes sriov_numvfs",
                {{}, {}, {}, {"0000:01:00.0"}, {}}},
        Written{
            "/etc/udev/rules.d/a.rules", "ATTR{device/sriov_numvfs}!=\"0\", NAME=\"x\"\n", "", {}},
        Written{"/etc/libvirt/qemu/networks/vfs.xml",
                "\n<name>vfs</name>\n<forward mode='hostdev' managed='yes'>\n"
                "<pf dev='ens1f0'/>\n",
                "attaches VFs to VMs", netdev("ens1f0")},
        Written{"/etc/libvirt/qemu/networks/vfs.xml",
                "<name>vfs</name>\n<forward managed=\"yes\" mode=\"hostdev\">\n"
                "<address type='pci' domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/>\n",
                "attaches VFs to VMs",
                {{}, {}, {}, {"0000:3b:00.2"}, {}}},
        Written{"/etc/libvirt/qemu/networks/default.xml",
                "<name>default</name>\n<forward mode='nat'/>\n",
                "",
                {}},
        Written{"/etc/neutron/plugins/ml2/sriov_agent.ini",
                "\nphysical_device_mappings = physnet2:ens1f0,physnet2:ens1f1\n",
                "lets neutron's agent set VFs up",
                {{"ens1f0", "ens1f1"}, {}, {}, {}, {}}},
        Written{"/etc/neutron/plugins/ml2/sriov_agent.ini", "physical_device_mappings =\n", "", {}},
        Written{"/etc/nova/nova.conf",
                "device_spec = {\"devname\": \"ens1f0\", \"physical_network\": \"p\"}\n",
                "lets nova attach VFs to VMs", netdev("ens1f0")},
        Written{"/etc/nova/nova.conf",
                "passthrough_whitelist=[{\"address\":\"0a:00.*\"}, {\"devname\":1}]\n",
                "lets nova attach VFs to VMs",
                {{}, {}, {}, {"*:0a:00.*"}, {}}},
        Written{"/etc/nova/nova.conf",
                "device_spec = {'devname': 'ens1f0'}\n",
                "lets nova attach VFs to VMs",
                {}},
        Written{"/etc/rc.local",
                "echo 2 > '/sys/class/infiniband/mlx5_1/device/sriov_numvfs'\n",
                "writes sriov_numvfs",
                {{}, {}, {}, {}, {"mlx5_1"}}},
        Written{"/etc/rc.local",
                "for i in a b; do echo 2 > /sys/class/net/$i/device/sriov_numvfs\n",
                "writes sriov_numvfs",
                {}},
        Written{"/etc/systemd/system/a.service",
                "ExecStart=/opt/sriov-setup --all\n",
                "runs /opt/sriov-setup",
                {}},
        Written{"/etc/systemd/system/a.service", "ExecStart=/opt/setup --sriov\n", "", {}}));

// "nothing found" would be wrong of what was not understood: the word alone counts.
TEST(YamlOwners, AreMentionedInWhatIsNotUnderstood) {
    std::string const netplan = "network:\n  ethernets:\n    ens1:\n";
    std::string const mode = "      embedded-switch-mode: switchdev\n";
    for (auto const& [why, text] : std::map<std::string, std::string>{
             {"cut", netplan + mode + "      addresses: [10.0.0.1/24,"},
             {"a list instead of a mapping", netplan + "      match: [a]\n" + mode},
             {"not UTF-8", netplan + mode + "# caf\xe9\n"},
             {"with a zero", netplan + mode + std::string("# \0\n", 4)},
             {"nested too deeply", netplan + mode + "      a: " + std::string(10'000, '[')},
             {"too long", netplan + mode + std::string(1 << 16, '#')}}) {
        auto const owners = parse_sriov_owners("/etc/netplan/a.yaml", text);
        ASSERT_EQ(owners.size(), 1U) << why;
        EXPECT_EQ(owners[0].does, "sets VFs up") << why;
        EXPECT_EQ(owners[0].line, "embedded-switch-mode") << why;
        EXPECT_TRUE(owners[0].of.any()) << why;
    }
    auto const owners =
        parse_sriov_owners("/etc/sriov-operator/sriov-interface-config.yaml",
                           "spec:\n  interfaces:\n  - {name: a, numVfs: 3}\n  - b: [\n");
    ASSERT_EQ(owners.size(), 1U);
    EXPECT_EQ(owners[0].does, "makes VFs");
    EXPECT_EQ(owners[0].line_number, 3U);
}

// 300 devices share one mapping of 300 keys: no file that somebody wrote.
TEST(YamlOwners, DoNotFollowAliasesWithoutEnd) {
    std::string text = "network:\n  ethernets:\n    d: &all {embedded-switch-mode: switchdev";
    for (int i = 0; i < 300; ++i) text += ", k" + std::to_string(i) + ": v";
    text += "}\n";
    for (int i = 0; i < 300; ++i) text += "    d" + std::to_string(i) + ": *all\n";
    auto const owners = parse_sriov_owners("/etc/netplan/a.yaml", text);
    ASSERT_EQ(owners.size(), 1U);
    EXPECT_TRUE(owners[0].of.any());
}

}  // namespace
}  // namespace vfmgr::checks
