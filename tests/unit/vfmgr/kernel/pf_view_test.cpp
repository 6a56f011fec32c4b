// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pf_view.hpp"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "host_tree.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::ip;
using test::pci;

IpPrefix prefix(std::string const& text) {
    return IpPrefix::parse(text).value();
}

Netdev netdev(int ifindex, std::string const& name) {
    Netdev netdev;
    netdev.ifindex = ifindex;
    netdev.name = name;
    netdev.hardware_type = 1;
    netdev.mtu = 1500;
    return netdev;
}

Netdev vlan_on(int parent, int ifindex, std::uint16_t id, std::string const& alias) {
    auto vlan = netdev(ifindex, "interface" + std::to_string(id));
    vlan.kind = "vlan";
    vlan.vlan = id;
    vlan.parent_ifindex = parent;
    vlan.alias = alias;
    return vlan;
}

// A PF with a representor that sorts before it, two VFs, two VLAN devices.
struct TwoVfs : HostTree {
    TwoVfs() {
        add_pf("0000:01:00.0", 7);
        bind("0000:01:00.0", "igb");
        write(device("0000:01:00.0") / "numa_node", "1\n");
        write(device("0000:01:00.0") / "net/aaa0/dev_port", "0\n");
        write(device("0000:01:00.0") / "net/enp1s0/dev_port", "0\n");
        add_vf("0000:01:00.0", 0, "0000:01:10.0");
        add_vf("0000:01:00.0", 5, "0000:01:11.2");
        put_in_group("0000:01:11.2", 13);
        bind("0000:01:11.2", "vfio-pci");
        make_group_node(13);

        auto representor = netdev(2, "aaa0");
        representor.phys_port_name = "pf0vf0";
        auto pf = netdev(3, "enp1s0");
        pf.up = pf.carrier = true;
        pf.mac = MacAddress::parse("52:54:00:aa:00:01").value();
        pf.phys_port_name = "p0";
        network.host.netdevs = {representor, pf, vlan_on(3, 8, 200, ""),
                                vlan_on(3, 7, 100, "vfmgr"), vlan_on(2, 9, 300, "vfmgr")};
        network.host.addresses = {{7, ip("192.168.100.3"), 32}, {3, ip("10.1.2.3"), 20}};
    }
    [[nodiscard]] PfState view() {
        DeviceBooks books;
        auto const pf = pci("0000:01:00.0");
        auto const vfs = list_vfs_with_nodes(roots(), pf).value();
        return view_pf(roots(), books, {network, vfs, settings, holders, eswitch}, pf).value();
    }
    NetworkSnapshot network;
    VfSettings settings;
    Holders holders;
    Switch eswitch;
};

// A bond gives all its members one MAC; IPoIB's address is not one.
TEST(PfView, KnowsThePfByItsPermanentMacOrGuid) {
    TwoVfs tree;
    EXPECT_EQ(tree.view().info.identity, PfIdentity{}) << "nothing is guessed";
    auto& pf = tree.network.host.netdevs[1];
    pf.permanent_mac = MacAddress::parse("52:54:00:aa:00:99").value();
    EXPECT_EQ(tree.view().info.identity.mac, pf.permanent_mac);
    EXPECT_NE(tree.view().info.identity.mac, pf.mac);
    auto const device = tree.device("0000:01:00.0") / "infiniband/mlx5_0";
    tree.write(device / "node_guid", "248a:0703:008d:ae2e\n");
    tree.write(device / "ports/1/link_layer", "Ethernet\n");
    EXPECT_EQ(tree.view().info.identity.guid, std::nullopt) << "that is made of the MAC";
    tree.write(device / "ports/1/link_layer", "InfiniBand\n");
    EXPECT_EQ(tree.view().info.identity.guid, Guid{0x248a0703008dae2e});
    tree.write(device / "node_guid", "0000:0000:0000:0000\n");
    EXPECT_EQ(tree.view().info.identity.guid, std::nullopt);
    tree.write(tree.device("0000:01:00.0") / "vpd", std::string("\x90\x05\0SN\x02XY\x78", 9));
    EXPECT_EQ(tree.view().info.identity.serial, "XY");
}

TEST(PfView, TakesWhatDevlinkSaysOfTheSwitch) {
    TwoVfs tree;
    EXPECT_EQ(tree.view().info.eswitch_mode, std::nullopt);
    tree.eswitch = {EswitchMode::switchdev, {{65537, 5, false}, {65538, 9, true}}};
    auto const seen = tree.view();
    EXPECT_EQ(seen.info.eswitch_mode, EswitchMode::switchdev);
    for (auto const& vf : seen.vfs)
        EXPECT_EQ(vf.settings.roce, vf.index == 5 ? std::optional(false) : std::nullopt)
            << vf.index;
    EXPECT_TRUE(std::ranges::any_of(seen.vfs, [](VfState const& vf) { return vf.index == 5; }));
}

TEST(ViewPf, PutsSysfsAndNetworkTogether) {
    TwoVfs tree;
    auto const pf = tree.view();
    EXPECT_EQ(pf.info.ifname, "enp1s0") << "not the representor";
    EXPECT_EQ(pf.info.driver, "igb");
    EXPECT_EQ(pf.info.vendor_name, "Intel Corporation");
    EXPECT_EQ(pf.info.total_vfs, 7);
    EXPECT_EQ(pf.info.num_vfs, 2);
    EXPECT_EQ(pf.info.numa_node, 1);
    EXPECT_TRUE(pf.info.up);
    EXPECT_TRUE(pf.info.carrier);
    EXPECT_EQ(pf.info.link_layer, LinkLayer::ethernet);
    EXPECT_EQ(to_string(pf.info.mac.value()), "52:54:00:aa:00:01");
    EXPECT_EQ(pf.info.rdma_device, std::nullopt);
    EXPECT_FALSE(pf.stale);
}

TEST(ViewPf, VfsHaveTheirOwnFacts) {
    TwoVfs tree;
    tree.settings[5].trust = true;
    tree.write(tree.device("0000:01:10.0") / "net/enp1s0v0/uevent", "");
    struct stat null{};
    ASSERT_EQ(::stat("/dev/null", &null), 0);
    tree.holders[null.st_rdev] = {{812, "qemu-system-x86"}};
    auto const pf = tree.view();
    ASSERT_EQ(pf.vfs.size(), 2U);
    EXPECT_EQ(pf.vfs[0].index, 0);
    EXPECT_EQ(pf.vfs[0].driver, std::nullopt);
    EXPECT_EQ(pf.vfs[0].iommu_group, std::nullopt);
    EXPECT_EQ(pf.vfs[0].ifname, "enp1s0v0");
    EXPECT_TRUE(empty(pf.vfs[0].settings)) << "not reported is absent";
    EXPECT_TRUE(pf.vfs[0].holders.empty());
    tree.write(tree.device("0000:01:11.2") / "config", test::configuration_with_msix(3));
    EXPECT_EQ(tree.view().vfs[1].settings.msix_vectors, 3U);
    EXPECT_EQ(pf.vfs[1].index, 5);
    EXPECT_EQ(pf.vfs[1].pci, pci("0000:01:11.2"));
    EXPECT_EQ(pf.vfs[1].driver, "vfio-pci");
    EXPECT_EQ(pf.vfs[1].iommu_group, 13U);
    EXPECT_EQ(pf.vfs[1].settings.trust, true);
    EXPECT_EQ(pf.vfs[1].holders, (std::vector<VfioHolder>{{812, "qemu-system-x86"}}));
}

TEST(ViewPf, NamesTheVfioDriverMadeForItsVfs) {
    TwoVfs tree;
    tree.write(tree.device("0000:01:10.0") / "modalias", "pci:v000015B3d0000101Esv0sd0bc02sc00i00");
    EXPECT_EQ(tree.view().info.vfio_variant, std::nullopt);
    tree.write(tree.roots().modules / "modules.alias",
               "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n");
    EXPECT_EQ(tree.view().info.vfio_variant, (VfioVariant{"mlx5_vfio_pci", {}}));
}

TEST(ViewPf, NamesTheBondThatItIsPartOf) {
    TwoVfs tree;
    EXPECT_EQ(tree.view().info.controller, std::nullopt);
    auto& netdevs = tree.network.host.netdevs;
    Netdev bond;
    bond.ifindex = 40;
    bond.name = "bond0";
    std::ranges::find(netdevs, "enp1s0", &Netdev::name)->controller_ifindex = bond.ifindex;
    netdevs.push_back(bond);
    EXPECT_EQ(tree.view().info.controller, "bond0");
}

TEST(ViewPf, InterfacesAreTheUntaggedOneAndItsVlansInOrder) {
    TwoVfs tree;
    auto const interfaces = tree.view().interfaces;
    ASSERT_EQ(interfaces.size(), 3U);
    EXPECT_EQ(interfaces[0].id.vlan, std::nullopt);
    EXPECT_EQ(interfaces[0].ifname, "enp1s0");
    EXPECT_EQ(interfaces[0].addresses, std::vector{ip("10.1.2.3")});
    EXPECT_EQ(interfaces[0].prefixes, std::vector{prefix("10.1.0.0/20")});
    EXPECT_FALSE(interfaces[0].ours);
    EXPECT_EQ(interfaces[1].id.vlan, 100);
    EXPECT_TRUE(interfaces[1].ours);
    EXPECT_EQ(interfaces[1].prefixes, std::vector{prefix("192.168.100.3/32")});
    EXPECT_EQ(interfaces[2].id.vlan, 200);
    EXPECT_FALSE(interfaces[2].ours) << "somebody else's VLAN device";
}

TEST(ViewPf, PeersAreOurRoutesWithTheirPermanentNeighbours) {
    TwoVfs tree;
    auto const mac = MacAddress::parse("52:54:00:01:02:03").value();
    auto const route = [](std::string const& to, int ifindex, std::uint8_t protocol) {
        return IpRoute{prefix(to), ifindex, {}, {}, protocol};
    };
    tree.network.routes = {route("192.168.100.10/32", 7, our_route_protocol),
                           route("192.168.100.11/32", 7, our_route_protocol),
                           route("192.168.100.12/32", 7, RTPROT_STATIC),
                           route("192.168.100.13/32", 8, our_route_protocol)};
    tree.network.neighbours = {{7, ip("192.168.100.10"), mac, NUD_PERMANENT},
                               {7, ip("192.168.100.11"), mac, NUD_REACHABLE},
                               {8, ip("192.168.100.10"), mac, NUD_PERMANENT}};
    auto const interfaces = tree.view().interfaces;
    EXPECT_EQ(interfaces[1].peers, (std::vector<PeerEntry>{{ip("192.168.100.10"), mac},
                                                           {ip("192.168.100.11"), std::nullopt}}));
    EXPECT_EQ(interfaces[2].peers.size(), 1U);
    EXPECT_TRUE(interfaces[0].peers.empty());
}

TEST(ViewPf, HardwareRdmaComesFromTheDeviceAndSoftwareFromTheNetdev) {
    TwoVfs tree;
    tree.network.rdma_devices = {{0, "vfmgr_enp1s0", "rxe", {{1, 4, 3, "enp1s0"}}}};
    EXPECT_EQ(tree.view().info.rdma_device, "vfmgr_enp1s0");
    EXPECT_EQ(tree.view().info.rdma_driver, "rxe");
    tree.write(tree.device("0000:01:00.0") / "infiniband/mlx5_0/node_type", "1: CA\n");
    EXPECT_EQ(tree.view().info.rdma_device, "mlx5_0");
    EXPECT_EQ(tree.view().info.rdma_driver, std::nullopt);
}

TEST(ViewPf, ListenersAreThoseOfItsRdmaDeviceWithTheirNames) {
    TwoVfs tree;
    tree.network.rdma_devices = {{0, "rxe0", "rxe", {{1, 4, 3, "enp1s0"}}}};
    tree.network.listeners = {{"rxe0", {{812, "", {}, 7174}, {{}, "nvmet_rdma", {}, 4420}}},
                              {"rxe1", {{813, "", {}, 7174}}}};
    tree.write(tree.roots().proc / "812/comm", "rping\n");
    std::vector<RdmaListener> const both{{812, "rping", {}, 7174}, {{}, "nvmet_rdma", {}, 4420}};
    EXPECT_EQ(tree.view().listeners, both);
    tree.write(tree.device("0000:01:00.0") / "infiniband/mlx5_0/node_type", "1: CA\n");
    EXPECT_TRUE(tree.view().listeners.empty()) << "of the other device";
    tree.network.listeners["mlx5_0"] = tree.network.listeners.at("rxe0");
    EXPECT_EQ(tree.view().listeners, both);
}

TEST(ViewPf, WithoutANetworkDeviceItHasNoInterfaces) {
    TwoVfs tree;
    fs::remove_all(tree.device("0000:01:00.0") / "net");
    auto const pf = tree.view();
    EXPECT_EQ(pf.info.ifname, "");
    EXPECT_TRUE(pf.interfaces.empty());
    EXPECT_EQ(pf.vfs.size(), 2U);
    // Without ib_ipoib the RDMA device's port has the link type.
    tree.write(tree.device("0000:01:00.0") / "infiniband/mlx5_0/ports/1/link_layer",
               "InfiniBand\n");
    EXPECT_EQ(tree.view().info.link_layer, LinkLayer::infiniband);
}

TEST(ViewPf, OfTwoPortsTheFirstIsThePfs) {
    TwoVfs tree;
    tree.write(tree.device("0000:01:00.0") / "net/enp1s0/dev_port", "1\n");
    tree.write(tree.device("0000:01:00.0") / "net/enp1s0d1/dev_port", "0\n");
    tree.network.host.netdevs.push_back(netdev(20, "enp1s0d1"));
    EXPECT_EQ(tree.view().info.ifname, "enp1s0d1");
}

TEST(ViewPf, InfinibandHasNoSixByteMac) {
    TwoVfs tree;
    tree.network.host.netdevs[1].hardware_type = 32;
    tree.network.host.netdevs[1].mac.reset();
    EXPECT_EQ(tree.view().info.link_layer, LinkLayer::infiniband);
    EXPECT_EQ(tree.view().info.mac, std::nullopt);
}

TEST(ViewRoutes, AreThoseOfOthers) {
    TwoVfs tree;
    auto const route = [](std::string const& to, std::optional<int> ifindex,
                          std::uint8_t protocol) {
        return IpRoute{prefix(to), ifindex, {}, {}, protocol};
    };
    tree.network.host.addresses.push_back({3, ip("fd00:1::3"), 128});
    tree.network.routes = {route("0.0.0.0/0", 3, RTPROT_STATIC),
                           route("10.0.0.0/16", 3, RTPROT_KERNEL),
                           route("192.168.100.10/32", 3, our_route_protocol),
                           route("fe80::/64", 7, RTPROT_KERNEL),      // on one of vfmgr's devices
                           route("fd00:1::3/128", 3, RTPROT_KERNEL),  // the host's own address
                           route("fd00:1::4/128", 3, RTPROT_STATIC),
                           route("10.9.0.0/16", std::nullopt, RTPROT_STATIC)};
    EXPECT_EQ(view_routes(tree.network),
              (std::vector<HostRoute>{{prefix("10.0.0.0/16"), "enp1s0"},
                                      {prefix("fd00:1::4/128"), "enp1s0"},
                                      {prefix("10.9.0.0/16"), ""}}));
}

}  // namespace
}  // namespace vfmgr
