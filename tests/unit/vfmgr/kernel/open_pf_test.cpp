// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pf_view.hpp"

#include <sys/mount.h>

#include "tests/unit/vfmgr/kernel/veth_pf.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::pci;
using test::soon;

// With its interface in this network's own sysfs of the kernel.
struct SysfsPf : test::VethPf {
    SysfsPf() {
        fs::create_directories(kernels());
        EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
        EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
        EXPECT_EQ(::mount("sysfs", kernels().c_str(), "sysfs", 0, nullptr), 0);
        show("near0");
    }
    ~SysfsPf() { ::umount2(kernels().c_str(), MNT_DETACH); }
    SysfsPf(SysfsPf&&) = delete;

    void show(std::string const& name) const {
        link(device(pf) / "net" / name, kernels() / "class/net" / name);
    }
    void hide(std::string const& name) const { fs::remove(device(pf) / "net" / name); }
    [[nodiscard]] fs::path kernels() const { return device(pf) / "kernels_sysfs"; }
    [[nodiscard]] Netdev netdev(std::string const& name) {
        return get_netdev(socket, name, soon()).value();
    }
    void rename(std::string const& from, std::string const& to) {
        ifinfomsg header{};
        header.ifi_index = netdev(from).ifindex;
        NlRequest request(RTM_NEWLINK, 0);
        request.header(header).put_text(IFLA_IFNAME, to);
        EXPECT_TRUE(socket.request(request, "RTM_NEWLINK", soon()).value().ok());
    }
    [[nodiscard]] OpenPf open() const { return OpenPf::open(roots(), pci(pf), soon()).value(); }
};

using OpenPfTest = test::Networked;

TEST_F(OpenPfTest, KnowsItsInterfaceAndVfs) {
    SysfsPf tree;
    auto const pf = tree.open();
    ASSERT_TRUE(pf.netdev());
    EXPECT_EQ(pf.netdev()->name, "near0");
    EXPECT_EQ(pf.netdev()->ifindex, tree.netdev("near0").ifindex);
    EXPECT_TRUE(pf.unchanged());
    EXPECT_TRUE(pf.has_vf(2));
    EXPECT_FALSE(pf.has_vf(3));
    tree.add_vf(SysfsPf::pf, 3, "0000:01:10.6");
    EXPECT_TRUE(pf.has_vf(3));
}

TEST_F(OpenPfTest, IsOpenedAgainForAnotherName) {
    SysfsPf tree;
    auto const pf = tree.open();
    tree.rename("near0", "near1");
    EXPECT_FALSE(pf.unchanged());
}

// Also for an interface with the same name and number, as unbinding and binding a driver makes it.
TEST_F(OpenPfTest, IsOpenedAgainForAnotherInterface) {
    SysfsPf tree;
    auto const pf = tree.open();
    ASSERT_TRUE(delete_netdev(tree.socket, tree.netdev("near0"), soon()));
    EXPECT_FALSE(pf.unchanged());
    ASSERT_TRUE(test::make_veth(tree.socket, {"near0", "far0"}));
    EXPECT_FALSE(pf.unchanged());
}

TEST_F(OpenPfTest, IsOpenedEachTimeWhereOneFileDoesNotTell) {
    SysfsPf tree;
    ASSERT_TRUE(test::make_veth(tree.socket, {"near0pf0vf1", "far1"}));
    tree.show("near0pf0vf1");
    EXPECT_FALSE(tree.open().unchanged());
    tree.hide("near0pf0vf1");
    EXPECT_TRUE(tree.open().unchanged());
    tree.hide("near0");
    auto const none = tree.open();
    EXPECT_FALSE(none.netdev());
    EXPECT_FALSE(none.unchanged());
}

TEST_F(OpenPfTest, ThereIsNoSuchDevice) {
    SysfsPf const tree;
    auto const none = OpenPf::open(tree.roots(), pci("0000:02:00.0"), soon());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().problem, Problem::not_found);
    EXPECT_EQ(none.error().detail, "there is no PCI device 0000:02:00.0");
}

// One kernel, one step after the other: each uses the interface as it is by then.
TEST_F(OpenPfTest, StepsFollowTheInterface) {
    SysfsPf tree;
    LinuxKernel kernel(tree.roots());
    VfSpec settings;
    settings.trust = true;
    ConfigureVfs const step{pci(SysfsPf::pf), {{2, settings}}, {"trust"}};
    auto const remark = [&] {
        auto const done = kernel.perform(step, soon());
        return done ? done->remarks.at(0) : done.error().detail;
    };
    EXPECT_EQ(remark(), "igb refused trust on for VF 2 of near0: Operation not supported");
    EXPECT_EQ(remark(), "igb refused trust on for VF 2 of near0: Operation not supported");
    tree.rename("near0", "near1");
    tree.hide("near0");
    tree.show("near1");
    EXPECT_EQ(remark(), "igb refused trust on for VF 2 of near1: Operation not supported");
    ASSERT_TRUE(delete_netdev(tree.socket, tree.netdev("near1"), soon()));
    ASSERT_TRUE(test::make_veth(tree.socket, {"near1", "far0"}));
    EXPECT_EQ(remark(), "igb refused trust on for VF 2 of near1: Operation not supported");
    ASSERT_TRUE(delete_netdev(tree.socket, tree.netdev("near1"), soon()));
    tree.hide("near1");
    EXPECT_EQ(remark(),
              "0000:01:00.0 has no network interface through which its VFs can be configured");
}

}  // namespace
}  // namespace vfmgr
