// SPDX-License-Identifier: Apache-2.0
// What this machine's kernel can show of RDMA links; the lab covers what needs rdma_rxe.
#include "vfmgr/kernel/rdma_links.hpp"

#include "host_tree.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

using test::HostTree;
using test::soon;

// As depmod writes them, on Linux 6.1.
constexpr auto aliases =
    "# Aliases extracted from modules themselves.\n"
    "alias rdma-link-rxe rdma_rxe\n"
    "alias rdma-link-siw2 other\n"
    "alias pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_core\n";

TEST(LinkModules, AreLoadedLoadableOrBuiltIn) {
    HostTree tree;
    LinkModules modules;
    auto const there = [&](SoftRdmaType type) { return modules.there(tree.roots(), type); };
    EXPECT_EQ(there(SoftRdmaType::rxe), std::nullopt) << "the modules can't be seen";
    auto const file = tree.roots().modules / "modules.alias";
    tree.write(file, aliases);
    EXPECT_EQ(there(SoftRdmaType::rxe), true);
    EXPECT_EQ(there(SoftRdmaType::siw), false);
    tree.write(tree.roots().modules / "modules.builtin",
               "kernel/drivers/infiniband/sw/siw/siw.ko\n");
    EXPECT_EQ(there(SoftRdmaType::siw), false) << "read once for all";
    std::filesystem::last_write_time(
        file, std::filesystem::last_write_time(file) + std::chrono::seconds(1));
    EXPECT_EQ(there(SoftRdmaType::siw), true) << "depmod has run";
}

TEST(LinkModules, ADashIsAnUnderscore) {
    HostTree tree;
    tree.write(tree.roots().modules / "modules.alias", "alias rdma_link_siw siw\n");
    EXPECT_EQ(LinkModules().there(tree.roots(), SoftRdmaType::siw), true);
}

TEST(LinkModules, OneThatIsLoadedNeedsNoList) {
    HostTree tree;
    tree.write(tree.roots().sysfs / "module/siw/refcnt", "0\n");
    EXPECT_EQ(LinkModules().there(tree.roots(), SoftRdmaType::siw), true);
}

using HostNetworkTest = test::Networked;

TEST_F(HostNetworkTest, ShowsNetdevsAsTheyAre) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, true, {}}, soon()));
    auto const vlan = add_vlan_netdev(socket, {near.ifindex, 100, "near0.100"}, soon());
    HostTree tree;
    LinkModules modules;
    auto const view = view_host_network(tree.roots(), modules, soon()).value();
    EXPECT_TRUE(view.netdevs.at("lo").loopback);
    EXPECT_FALSE(view.netdevs.at("lo").ethernet);
    EXPECT_EQ(view.netdevs.at("lo").mac, std::nullopt);
    EXPECT_TRUE(view.netdevs.at("near0").ethernet);
    EXPECT_TRUE(near.mac);
    EXPECT_EQ(view.netdevs.at("near0").mac, near.mac);
    EXPECT_TRUE(view.netdevs.at("near0").up);
    EXPECT_FALSE(view.netdevs.at("far0").up);
    EXPECT_EQ(view.netdevs.at("near0").parent, std::nullopt);
    EXPECT_EQ(view.rxe_module, std::nullopt);
    if (!vlan) GTEST_SKIP() << "this kernel makes no VLAN devices: " << vlan.error().detail;
    EXPECT_EQ(view.netdevs.at("near0.100").parent, "near0");
}

// Observes the host's network alone, and a PF without it: each worker observes only its own part.
TEST_F(HostNetworkTest, IsAPartOfItsOwn) {
    HostTree tree;
    tree.add_pf("0000:01:00.0", 7);
    LinuxKernel kernel(tree.roots());
    auto const network = kernel.observe(HostNetwork{}).value();
    EXPECT_TRUE(network.network);
    EXPECT_TRUE(network.pfs.empty());
    auto const pf = kernel.observe(test::pci("0000:01:00.0")).value();
    EXPECT_FALSE(pf.network);
    EXPECT_EQ(pf.pfs.size(), 1U);
    auto const all = kernel.observe(std::nullopt).value();
    EXPECT_TRUE(all.network);
    EXPECT_EQ(all.pfs.size(), 1U);
}

// rxe is bound to the first network namespace: here it is refused, or there is no RDMA at all.
TEST_F(HostNetworkTest, ALinkThatCannotBeMadeHasARemedy) {
    HostTree tree;
    auto const made =
        perform_step(tree.roots(), AddSoftRdmaLink{{"rxe0", SoftRdmaType::rxe, "none0"}}, soon());
    ASSERT_FALSE(made);
    EXPECT_FALSE(made.error().remedy.empty());
    EXPECT_TRUE(perform_step(tree.roots(), RemoveSoftRdmaLink{"no such link", false}, soon()));
}

}  // namespace
}  // namespace vfmgr
