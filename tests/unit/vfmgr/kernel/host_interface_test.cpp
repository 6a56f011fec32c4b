// SPDX-License-Identifier: Apache-2.0
// The host's interface on a real network: a veth pair in a namespace of the test's own; near0 is
// the PF.
#include "host_tree.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;
using test::HostTree;
using test::ip;
using test::pci;
using test::soon;

struct VethPf : HostTree {
    VethPf() {
        EXPECT_TRUE(test::make_veth(socket, {"near0", "far0"}));
        add_pf("0000:01:00.0", 7);
        write(device("0000:01:00.0") / "net/near0/dev_port", "0\n");
    }
    template <class Step>
    [[nodiscard]] Result<Observed> perform(Step const& step, Deadline deadline = soon()) {
        return kernel.perform(step, deadline);
    }
    [[nodiscard]] HostInterface untagged() {
        return kernel.observe(pf).value().pfs.at(pf).interfaces.at(0);
    }
    void raise_far_end() {
        auto const far = get_netdev(socket, "far0", soon()).value();
        EXPECT_TRUE(change_netdev(socket, "far0", {far.ifindex, true, {}}, soon()));
    }
    PciAddress pf = pci("0000:01:00.0");
    InterfaceId interface{pf, std::nullopt};
    NlSocket socket = NlSocket::open(NlProtocol::route).value();
    LinuxKernel kernel{roots()};
};

using HostInterfaces = test::Networked;

TEST(VlanInterfaceName, IsPlainWhileItFitsAndUniqueWhenNot) {
    auto const pf = pci("0000:81:00.1");
    EXPECT_EQ(vlan_interface_name(pf, "enp1s0", 100), "enp1s0.100");
    EXPECT_EQ(vlan_interface_name(pf, "enp129s0f0", 4094), "enp129s0f0.4094");  // 15 characters
    EXPECT_EQ(vlan_interface_name(pf, "enp129s0f1np1", 100), "v00008101.100");
    EXPECT_EQ(vlan_interface_name(pci("0000:81:1f.7"), "enp129s0f1np1", 4094), "v000081ff.4094");
    EXPECT_EQ(vlan_interface_name(pci("10000:81:00.1"), "enp129s0f1np1", 4094), "v100008101.4094");
}

TEST_F(HostInterfaces, UpDoesNotWaitForCarrier) {
    VethPf tree;
    auto const up = SetLink{tree.interface, true, 1400};
    ASSERT_TRUE(tree.perform(up)) << "the far end is down";
    AwaitCarrier const carrier{tree.interface};
    auto const refused = tree.perform(carrier, std::chrono::steady_clock::now() + milliseconds(50));
    ASSERT_FALSE(refused) << "the far end is down: no carrier";
    EXPECT_EQ(refused.error().problem, Problem::timed_out);
    EXPECT_EQ(refused.error().detail, "near0 is up but has no carrier");
    std::thread other([] {
        auto socket = NlSocket::open(NlProtocol::route).value();
        auto const far = get_netdev(socket, "far0", soon()).value();
        EXPECT_TRUE(change_netdev(socket, "far0", {far.ifindex, true, {}}, soon()));
    });
    auto const done = tree.perform(carrier);
    other.join();
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_TRUE(tree.untagged().up);
    EXPECT_EQ(tree.untagged().mtu, 1400U);
    EXPECT_TRUE(tree.perform(up)) << "again";
    ASSERT_TRUE(tree.perform(SetLink{tree.interface, false, 1500}));
    EXPECT_FALSE(tree.untagged().up);
    EXPECT_EQ(tree.untagged().mtu, 1500U);
}

TEST_F(HostInterfaces, AddressesAndPeersComeAndGo) {
    VethPf tree;
    tree.raise_far_end();
    ASSERT_TRUE(tree.perform(SetLink{tree.interface, true, 1500}));
    auto const mac = MacAddress::parse("52:54:00:01:02:03").value();
    for (auto const& [own, other] : {std::pair(ip("192.168.77.1"), ip("192.168.77.9")),
                                     std::pair(ip("fd00:77::1"), ip("fd00:77::9"))}) {
        auto const has = [&] {
            auto const all = tree.untagged().addresses;
            return std::count(all.begin(), all.end(), own);
        };
        for (int twice = 0; twice < 2; ++twice) {
            ASSERT_TRUE(tree.perform(AddAddress{tree.interface, own}));
            auto const added = tree.perform(AddPeer{tree.interface, other, mac, own});
            ASSERT_TRUE(added) << added.error().detail;
        }
        EXPECT_EQ(has(), 1);
        EXPECT_EQ(tree.untagged().peers, (std::vector<PeerEntry>{{other, mac}}));
        EXPECT_EQ(tree.untagged().closed, (std::vector<ClosedVm>{{other, mac, own}}));
        for (int twice = 0; twice < 2; ++twice) {
            ASSERT_TRUE(tree.perform(RemovePeer{tree.interface, other}));
            ASSERT_TRUE(tree.perform(RemoveAddress{tree.interface, own}));
        }
        EXPECT_EQ(has(), 0);
        EXPECT_TRUE(tree.untagged().peers.empty());
    }
    auto const left = take_snapshot(soon()).value().neighbours;
    EXPECT_TRUE(std::none_of(left.begin(), left.end(), permanent));
}

TEST_F(HostInterfaces, AnInterfaceThatIsGoneHasNothingToRemove) {
    VethPf tree;
    InterfaceId const vlan{tree.pf, 100};
    EXPECT_TRUE(tree.perform(RemovePeer{vlan, ip("192.168.77.9")}));
    EXPECT_TRUE(tree.perform(RemoveAddress{vlan, ip("192.168.77.1")}));
    EXPECT_TRUE(tree.perform(RemoveVlanInterface{vlan}));
    auto const refused = tree.perform(AddAddress{vlan, ip("192.168.77.1")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::not_found);
    EXPECT_EQ(refused.error().detail, "0000:01:00.0 vlan 100 has no network interface");
}

TEST_F(HostInterfaces, TheUntaggedInterfaceIsNoVlanDevice) {
    VethPf tree;
    EXPECT_EQ(tree.perform(AddVlanInterface{tree.interface}).error().problem,
              Problem::invalid_request);
    EXPECT_EQ(tree.perform(RemoveVlanInterface{tree.interface}).error().problem,
              Problem::invalid_request);
}

TEST_F(HostInterfaces, ANameThatSomebodyElseHasIsAConflict) {
    VethPf tree;
    ASSERT_TRUE(test::make_veth(tree.socket, {"near0.100", "far1"}));
    auto const refused = tree.perform(AddVlanInterface{{tree.pf, 100}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_EQ(refused.error().detail,
              "the interface near0.100 already exists but is not VLAN 100 of near0");
}

// A kernel without 8021q reports that, with a remedy; the lab's has it.
TEST_F(HostInterfaces, AVlanDeviceIsOurs) {
    VethPf tree;
    InterfaceId const vlan{tree.pf, 100};
    tree.write(tree.roots().proc / "sys/net/ipv6/conf/near0.100/accept_ra", "1\n");
    tree.write(tree.roots().proc / "sys/net/ipv6/conf/near0.100/addr_gen_mode", "0\n");
    auto const added = tree.perform(AddVlanInterface{vlan});
    if (!added) {
        EXPECT_EQ(added.error().problem, Problem::unsupported);
        EXPECT_NE(added.error().remedy.find("modprobe 8021q"), std::string::npos);
        GTEST_SKIP() << "this kernel makes no VLAN devices: " << added.error().detail;
    }
    EXPECT_TRUE(tree.perform(AddVlanInterface{vlan}));
    EXPECT_EQ(tree.read(tree.roots().proc / "sys/net/ipv6/conf/near0.100/accept_ra"), "0");
    EXPECT_EQ(tree.read(tree.roots().proc / "sys/net/ipv6/conf/near0.100/addr_gen_mode"), "1");
    auto const interfaces = tree.kernel.observe(tree.pf).value().pfs.at(tree.pf).interfaces;
    ASSERT_EQ(interfaces.size(), 2U);
    EXPECT_TRUE(interfaces[1].ours);
    ASSERT_TRUE(tree.perform(RemoveVlanInterface{vlan}));
    EXPECT_TRUE(tree.perform(RemoveVlanInterface{vlan}));
}

TEST_F(HostInterfaces, HardwareRdmaNeedsNoLink) {
    VethPf tree;
    tree.write(tree.device("0000:01:00.0") / "infiniband/mlx5_0/node_type", "1: CA\n");
    EXPECT_TRUE(tree.perform(AddRdmaLink{tree.pf}));
}

// A kernel with SoftRoCE creates it in a network namespace, too, where it is useless.
TEST_F(HostInterfaces, SoftRdmaThatCannotBeMadeHasARemedy) {
    VethPf tree;
    auto const refused = tree.perform(AddRdmaLink{tree.pf});
    if (refused) {
        EXPECT_TRUE(tree.perform(RemoveRdmaLink{tree.pf}));
        GTEST_SKIP() << "this kernel makes SoftRoCE";
    }
    EXPECT_FALSE(refused.error().remedy.empty());
    EXPECT_FALSE(refused.error().causes.empty());
    EXPECT_TRUE(tree.perform(RemoveRdmaLink{tree.pf}));
}

using Observe = test::Networked;

TEST_F(Observe, APfThatCannotBeReadIsStaleNotMissing) {
    VethPf tree;
    tree.add_pf("0000:02:00.0", 4);
    tree.write(tree.device("0000:02:00.0") / "sriov_totalvfs", "garbage\n");
    auto const view = tree.kernel.observe(std::nullopt).value();
    ASSERT_EQ(view.pfs.size(), 2U);
    auto const& broken = view.pfs.at(pci("0000:02:00.0"));
    EXPECT_TRUE(broken.stale);
    EXPECT_NE(broken.stale_reason.find("garbage"), std::string::npos);
    EXPECT_FALSE(view.pfs.at(tree.pf).stale);
    EXPECT_EQ(view.pfs.at(tree.pf).info.ifname, "near0");
    EXPECT_EQ(tree.kernel.observe(tree.pf).value().pfs.size(), 1U);
}

TEST_F(Observe, UnreadableDescriptorsMakeItStale) {
    VethPf tree;
    tree.add_vf("0000:01:00.0", 0, "0000:01:10.0");
    tree.put_in_group("0000:01:10.0", 12);
    tree.make_group_node(12);
    tree.write(tree.roots().proc / "812/fd", "not a folder");
    auto const view = tree.kernel.observe(tree.pf).value();
    auto const& pf = view.pfs.at(tree.pf);
    EXPECT_TRUE(pf.stale);
    EXPECT_NE(pf.stale_reason.find("process 812"), std::string::npos);
    EXPECT_EQ(pf.vfs.size(), 1U) << "what could be read is there";
}

}  // namespace
}  // namespace vfmgr
