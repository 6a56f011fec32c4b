// SPDX-License-Identifier: Apache-2.0
// The owner of a VF's VFIO nodes, on folders that resemble a host's.
#include <gmock/gmock.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host_tree.hpp"
#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

using namespace test;
using testing::HasSubstr;

constexpr std::uint32_t nodes_uid = 64055;
VfId const external_vf{pci("0000:01:00.0"), 0};

// VF 0 in group 20, bound to vfio-pci; its nodes are device files of their own.
struct ExternalTest : testing::Test {
    HostTree tree;
    fs::path const group = tree.roots().dev / "vfio/20";
    fs::path const device = tree.roots().dev / "vfio/devices/vfio3";

    ExternalTest() {
        tree.add_pf("0000:01:00.0", 7);
        tree.add_vf("0000:01:00.0", 0, "0000:01:10.0");
        tree.put_in_group("0000:01:10.0", 20);
        tree.bind("0000:01:10.0", "vfio-pci");
        fs::create_directories(tree.device("0000:01:10.0") / "vfio-dev/vfio3");
    }
    void SetUp() override {
        // The null device: it opens, and no process of the tree has it.
        for (auto const& node : {group, device})
            if (::mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
                GTEST_SKIP() << "device nodes can't be made here";
    }
    [[nodiscard]] Result<Observed> attach(std::optional<std::uint32_t> to = nodes_uid) const {
        return perform_step(tree.roots(), AttachExternal{external_vf, "qm-104", to}, soon());
    }
    [[nodiscard]] Result<Observed> detach(std::optional<std::uint32_t> owner = 0) const {
        return perform_step(tree.roots(), DetachExternal{external_vf, "qm-104", owner}, soon());
    }
    static std::uint32_t owner_of(fs::path const& node) {
        struct stat status{};
        EXPECT_EQ(::lstat(node.c_str(), &status), 0);
        return status.st_uid;
    }
    void hold() const {
        tree.add_process(812, "qemu-system-x86");
        tree.give_descriptor(812, 7, group);
    }
};

TEST_F(ExternalTest, TheUserGetsBothNodes) {
    ASSERT_TRUE(attach()) << attach().error().detail;
    EXPECT_EQ(owner_of(group), nodes_uid);
    EXPECT_EQ(owner_of(device), nodes_uid);
    auto const paths = read_vfio_nodes(tree.roots(), pci("0000:01:10.0")).paths.value();
    EXPECT_EQ(paths, (VfioPaths{group.string(), device.string(), nodes_uid}));
    ASSERT_TRUE(detach(107));
    EXPECT_EQ(owner_of(group), 107U);
    EXPECT_EQ(owner_of(device), 107U);
}

TEST_F(ExternalTest, WithoutAUidTheyStayAsTheyAre) {
    ASSERT_TRUE(attach({}));
    EXPECT_EQ(owner_of(group), 0U);
    ASSERT_TRUE(attach());
    ASSERT_TRUE(detach({}));
    EXPECT_EQ(owner_of(group), nodes_uid);
}

TEST_F(ExternalTest, NoVfThatIsHeldOrNotBound) {
    hold();
    ASSERT_FALSE(attach());
    EXPECT_THAT(attach().error().detail, HasSubstr("held open by qemu-system-x86 (pid 812)"));
    fs::remove_all(tree.roots().proc / "812");
    fs::remove_all(tree.device("0000:01:10.0") / "vfio-dev");
    ASSERT_FALSE(attach());
    EXPECT_THAT(attach().error().detail, HasSubstr("is not bound to VFIO"));
    EXPECT_EQ(owner_of(group), 0U);
    EXPECT_TRUE(detach()) << "it has no nodes";
}

TEST_F(ExternalTest, NoUidForAGroupWithAnotherFunction) {
    tree.add_device("0000:01:11.0");
    tree.put_in_group("0000:01:11.0", 20);
    ASSERT_FALSE(attach());
    EXPECT_THAT(attach().error().detail, HasSubstr("shares IOMMU group 20 with 0000:01:11.0"));
    EXPECT_EQ(owner_of(group), 0U);
    EXPECT_TRUE(attach({}));
    tree.write(tree.device("0000:01:11.0") / "class", "0x060400\n");
    EXPECT_TRUE(attach()) << "a bridge is of no use to anybody";
}

// The holder keeps what it has open, and can't open it again.
TEST_F(ExternalTest, TheEndNamesWhoHoldsItAndTakesTheNodes) {
    ASSERT_TRUE(attach());
    hold();
    auto const held = detach();
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().problem, Problem::vf_in_use);
    EXPECT_THAT(held.error().detail, HasSubstr("is held open by qemu-system-x86 (pid 812)"));
    EXPECT_EQ(owner_of(group), 0U);
    fs::remove_all(tree.roots().proc / "812");
    EXPECT_TRUE(detach());
}

TEST_F(ExternalTest, WhatIsNoDeviceIsNotFollowed) {
    fs::remove(group);
    tree.write(tree.roots().dev / "victim", "");
    fs::create_symlink(tree.roots().dev / "victim", group);
    fs::remove(device);
    tree.make_group_node(21);
    fs::create_symlink(tree.roots().dev / "vfio/21", device);
    ASSERT_FALSE(attach());
    EXPECT_EQ(owner_of(tree.roots().dev / "victim"), 0U);
}

}  // namespace
}  // namespace vfmgr
