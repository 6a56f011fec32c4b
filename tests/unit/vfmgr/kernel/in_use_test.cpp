// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/in_use.hpp"

#include <sys/stat.h>

#include "host_tree.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::pci;

// One VF in group 12 with a VFIO driver, and no user.
struct GuardedVf : HostTree {
    GuardedVf() {
        add_pf("0000:01:00.0", 7);
        add_vf("0000:01:00.0", 2, "0000:01:10.4");
        put_in_group("0000:01:10.4", 12);
        bind("0000:01:10.4", "vfio-pci");
        write(device("0000:01:10.4") / "vfio-dev/vfio0/uevent", "");
        make_group_node(12);
    }
    VfAt vf{{pci("0000:01:00.0"), 2}, pci("0000:01:10.4")};
    [[nodiscard]] Result<GroupHold> guard(HostNetdevs const& host = {}) const {
        return guard_unused(roots(), host, std::span(&vf, 1));
    }
};

TEST(GuardUnused, AnIdleVfIsAttachable) {
    GuardedVf const tree;
    tree.add_process(812, "bash");
    tree.give_descriptor(812, 0, "/dev/zero");
    tree.give_descriptor(812, 1, "/nowhere/at/all");
    auto const attachment = tree.guard();
    ASSERT_TRUE(attachment) << attachment.error().detail;
    EXPECT_EQ(attachment->groups_held(), 1U);
}

TEST(GuardUnused, AHolderOfTheGroupIsNamed) {
    GuardedVf const tree;
    tree.add_process(812, "qemu-system-x86");
    tree.give_descriptor(812, 33, "/dev/null");  // the group's device number
    auto const attachment = tree.guard();
    ASSERT_FALSE(attachment);
    EXPECT_EQ(attachment.error().problem, Problem::vf_in_use);
    EXPECT_EQ(attachment.error().detail,
              "VF 2 of 0000:01:00.0 (0000:01:10.4) is held open by qemu-system-x86 (pid 812)");
    EXPECT_NE(attachment.error().remedy.find("detach"), std::string::npos);
}

TEST(GuardUnused, AHolderOfTheDeviceNodeCountsToo) {
    GuardedVf const tree;
    fs::remove(tree.roots().dev / "vfio/12");
    tree.link(tree.roots().dev / "vfio/devices/vfio0", "/dev/full");
    tree.add_process(900, "cloud-hypervisor");
    tree.give_descriptor(900, 7, "/dev/full");
    auto const attachment = tree.guard();
    ASSERT_FALSE(attachment);
    EXPECT_NE(attachment.error().detail.find("cloud-hypervisor (pid 900)"), std::string::npos);
}

TEST(GuardUnused, DescriptorsThatCannotBeReadMeanInUse) {
    GuardedVf const tree;
    tree.add_process(812, "secret");
    fs::remove_all(tree.roots().proc / "812/fd");
    tree.write(tree.roots().proc / "812/fd", "not a folder: opendir fails");
    auto const attachment = tree.guard();
    ASSERT_FALSE(attachment);
    EXPECT_EQ(attachment.error().problem, Problem::vf_in_use);
    EXPECT_NE(attachment.error().detail.find("process 812"), std::string::npos);
}

TEST(GuardUnused, AProcessThatEndedMeanwhileHoldsNothing) {
    GuardedVf const tree;
    tree.add_process(812, "gone");
    fs::remove_all(tree.roots().proc / "812/fd");
    EXPECT_TRUE(tree.guard());
}

TEST(GuardUnused, WithoutProcNothingIsKnown) {
    GuardedVf const tree;
    fs::remove_all(tree.roots().proc);
    auto const attachment = tree.guard();
    ASSERT_FALSE(attachment);
    EXPECT_EQ(attachment.error().problem, Problem::vf_in_use);
}

TEST(GuardUnused, OurOwnDescriptorsAreNoUse) {
    GuardedVf const tree;
    tree.add_process(::getpid(), "vfmgrd");
    tree.give_descriptor(::getpid(), 5, "/dev/null");
    EXPECT_TRUE(tree.guard());
}

TEST(GuardUnused, AGroupThatCannotBeOpenedMeansInUse) {
    GuardedVf const tree;
    fs::remove(tree.roots().dev / "vfio/12");
    fs::create_directories(tree.roots().dev / "vfio/12");
    auto const attachment = tree.guard();
    ASSERT_FALSE(attachment);
    EXPECT_EQ(attachment.error().problem, Problem::vf_in_use);
    EXPECT_EQ(attachment.error().causes.at(0).code, "EISDIR");
}

TEST(GuardUnused, AVfWithoutVfioHasNothingToHold) {
    GuardedVf const tree;
    fs::remove(tree.roots().dev / "vfio/12");
    fs::remove_all(tree.device("0000:01:10.4") / "vfio-dev");
    fs::remove(tree.device("0000:01:10.4") / "driver");
    auto const attachment = tree.guard();
    ASSERT_TRUE(attachment);
    EXPECT_EQ(attachment->groups_held(), 0U);
}

TEST(GroupHold, TwoVfsInOneGroupAreOneOpen) {
    GuardedVf const tree;
    tree.add_vf("0000:01:00.0", 3, "0000:01:10.6");
    tree.put_in_group("0000:01:10.6", 12);
    std::vector<VfAt> const both{tree.vf, {{pci("0000:01:00.0"), 3}, pci("0000:01:10.6")}};
    EXPECT_EQ(GroupHold::take(tree.roots(), both).value().groups_held(), 1U);
}

struct HostDriven : GuardedVf {
    HostDriven() {
        fs::remove_all(device("0000:01:10.4") / "vfio-dev");
        bind("0000:01:10.4", "igbvf");
        write(device("0000:01:10.4") / "net/enp1s0v2/uevent", "");
        netdev.ifindex = 9;
        netdev.name = "enp1s0v2";
    }
    [[nodiscard]] Result<GroupHold> guard_with(char const* address) const {
        return guard({{netdev}, {{9, IpAddress::parse(address).value(), 24}}});
    }
    Netdev netdev;
};

TEST(GuardUnused, AnInterfaceThatIsUpWithAnAddressIsUse) {
    HostDriven tree;
    EXPECT_TRUE(tree.guard_with("10.9.9.9")) << "down";
    tree.netdev.up = true;
    auto const used = tree.guard_with("10.9.9.9");
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().detail,
              "VF 2 of 0000:01:00.0 (0000:01:10.4) is used by this host: enp1s0v2 is up and has "
              "10.9.9.9");
    EXPECT_TRUE(tree.guard_with("fe80::1")) << "a link-local address comes with being up";
    tree.netdev.ifindex = 10;
    EXPECT_TRUE(tree.guard_with("10.9.9.9")) << "another interface's address";
}

TEST(GuardUnused, APartOfABridgeIsUse) {
    HostDriven tree;
    tree.netdev.controller_ifindex = 4;
    auto const used = tree.guard_with("fe80::1");
    ASSERT_FALSE(used);
    EXPECT_NE(used.error().detail.find("bridge or bond"), std::string::npos);
}

TEST(GuardUnused, AnInterfaceThatIsNowhereToBeSeenIsUse) {
    HostDriven tree;
    fs::remove_all(tree.device("0000:01:10.4") / "net");
    auto const used = tree.guard();
    ASSERT_FALSE(used);
    EXPECT_NE(used.error().detail.find("another network namespace"), std::string::npos);
    tree.write(tree.device("0000:01:10.4") / "class", "0x010802\n");
    EXPECT_TRUE(tree.guard()) << "an NVMe VF has none";
}

TEST(VfioNodes, AreTheGroupsAndTheDevices) {
    GuardedVf const tree;
    struct stat null{}, zero{};
    ::stat("/dev/null", &null);
    ::stat("/dev/zero", &zero);
    auto const before = read_vfio_nodes(tree.roots(), tree.vf.pci);
    EXPECT_EQ(before.group, 12U);
    EXPECT_EQ(before.numbers, std::vector{null.st_rdev}) << "before Linux 6.6";
    tree.link(tree.roots().dev / "vfio/devices/vfio0", "/dev/zero");
    EXPECT_EQ(read_vfio_nodes(tree.roots(), tree.vf.pci).numbers,
              (std::vector{null.st_rdev, zero.st_rdev}));
    fs::rename(tree.roots().dev / "vfio/12", tree.roots().dev / "vfio/noiommu-12");
    EXPECT_EQ(vfio_nodes_of(tree.roots(), tree.vf.pci), (std::vector{null.st_rdev, zero.st_rdev}));
}

struct TwoProcesses : GuardedVf {
    TwoProcesses() {
        add_process(812, "qemu");
        give_descriptor(812, 5, "/dev/null");
        add_process(900, "bash");
        give_descriptor(900, 1, device("0000:01:00.0") / "sriov_numvfs");
        write(roots().proc / "900/fdinfo/1", "pos:\t0\nflags:\t0100001\n");
    }
    std::vector<NumVfsWriter> const writers{{pci("0000:01:00.0"), 900, "bash"}};
};

TEST(OpenFiles, AreHoldersAndWritersInOnePass) {
    TwoProcesses const tree;
    auto const nodes = vfio_nodes_of(tree.roots(), tree.vf.pci);
    auto const open = find_open_files(tree.roots(), nodes);
    ASSERT_TRUE(open.holders);
    EXPECT_EQ(holders_of(*open.holders, nodes), (std::vector<VfioHolder>{{812, "qemu"}}));
    EXPECT_EQ(open.numvfs_writers, tree.writers);
}

TEST(OpenFiles, ThatCannotBeReadMeanInUseWhereThereIsANode) {
    TwoProcesses const tree;
    tree.add_process(7, "hidden");
    fs::remove(tree.roots().proc / "7/fd");
    tree.write(tree.roots().proc / "7/fd", "no folder");
    auto const open = find_open_files(tree.roots(), vfio_nodes_of(tree.roots(), tree.vf.pci));
    ASSERT_FALSE(open.holders);
    EXPECT_EQ(open.holders.error().causes.at(0).code, "ENOTDIR");
    EXPECT_EQ(open.numvfs_writers, tree.writers) << "the others explain a hang all the same";
    EXPECT_TRUE(find_open_files(tree.roots(), {}).holders);
}

TEST(HoldersOf, ListsAProcessOnce) {
    Holders const holders{{1, {{812, "qemu"}}}, {2, {{812, "qemu"}, {900, "x"}}}};
    EXPECT_EQ(holders_of(holders, {1, 2, 3}), (std::vector<VfioHolder>{{812, "qemu"}, {900, "x"}}));
    EXPECT_TRUE(holders_of(holders, {3}).empty());
}

}  // namespace
}  // namespace vfmgr
