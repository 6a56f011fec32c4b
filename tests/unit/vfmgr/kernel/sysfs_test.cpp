// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/sysfs.hpp"

#include "host_tree.hpp"
#include "tests/unit/no_descriptors_left.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::pci;

TEST(ReadNumber, DecimalAndHexadecimal) {
    HostTree const tree;
    auto const file = tree.roots().sysfs / "number";
    tree.write(file, "63\n");
    EXPECT_EQ(read_number(file).value(), 63U);
    tree.write(file, "0x10c9\n");
    EXPECT_EQ(read_number(file).value(), 0x10c9U);
    for (auto const* const text : {"-1\n", "", "12x", " 7", "0x", "99999999999999999999"}) {
        tree.write(file, text);
        EXPECT_FALSE(read_number(file)) << text;
    }
}

TEST(ReadText, NamesFileAndErrno) {
    HostTree const tree;
    auto const missing = read_text(tree.roots().sysfs / "nothing");
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().detail.find("nothing can't be read"), std::string::npos);
    EXPECT_EQ(missing.error().causes.at(0).code, "ENOENT");
}

TEST(WriteText, GivesTheErrno) {
    HostTree const tree;
    auto const file = tree.roots().sysfs / "attribute";
    EXPECT_EQ(write_text(file, "1"), ENOENT);
    tree.write(file, "something longer");
    EXPECT_EQ(write_text(file, "1"), 0);
    EXPECT_EQ(tree.read(file), "1");
    EXPECT_EQ(write_text(tree.roots().sysfs, "1"), EISDIR);
}

TEST(ListPfs, AreTheDevicesWithSriovTotalvfs) {
    HostTree const tree;
    tree.add_pf("0000:81:00.1", 8);
    tree.add_pf("0000:3b:00.0", 8);
    tree.add_device("0000:00:1f.0");
    auto const pfs = list_pfs(tree.roots()).value();
    EXPECT_EQ(pfs, (std::vector{pci("0000:3b:00.0"), pci("0000:81:00.1")}));
}

TEST(IsPf, AsksForOneDevice) {
    HostTree const tree;
    tree.add_pf("0000:81:00.1", 8);
    tree.add_device("0000:00:1f.0");
    EXPECT_TRUE(is_pf(tree.roots(), pci("0000:81:00.1")).value());
    EXPECT_FALSE(is_pf(tree.roots(), pci("0000:00:1f.0")).value());
    EXPECT_FALSE(is_pf(tree.roots(), pci("0000:81:00.0")).value());
    auto roots = tree.roots();
    roots.sysfs /= std::string(300, 'x');  // ENAMETOOLONG: not known, which is not "no"
    EXPECT_FALSE(is_pf(roots, pci("0000:81:00.1")));
}

// As in the kernel's tree, where bus/pci/devices has only links.
TEST(RootsBeside, FindAPfsVfsWhereItIs) {
    HostTree const tree;
    auto const real = tree.roots().sysfs / "devices/pci0000:00/0000:00:03.0";
    tree.add_pf("0000:81:00.1", 8);
    tree.add_vf("0000:81:00.1", 0, "0000:82:10.0");
    fs::create_directories(real);
    for (auto const* const name : {"0000:81:00.1", "0000:82:10.0"}) {
        fs::rename(tree.device(name), real / name);
        tree.link(tree.device(name), real / name);
    }
    auto const pf = pci("0000:81:00.1"), vf = pci("0000:82:10.0");
    auto const beside = roots_beside(tree.roots(), pf);
    EXPECT_EQ(pci_folder(beside, vf), real / "0000:82:10.0");
    EXPECT_EQ(list_vfs(beside, pf).value(), list_vfs(tree.roots(), pf).value());
    EXPECT_EQ(pci_folder(tree.roots(), vf), tree.device("0000:82:10.0"));
    EXPECT_EQ(pci_folder(roots_beside(tree.roots(), pci("0000:81:00.0")), vf),
              tree.device("0000:82:10.0"))
        << "of a PF that is gone";
}

TEST(ListPfs, WithoutSysfsIsAnErrorNotAnEmptyHost) {
    HostTree const tree;
    auto roots = tree.roots();
    roots.sysfs /= "elsewhere";
    EXPECT_FALSE(list_pfs(roots));
}

// Otherwise all PFs would be gone, and no VF guarded.
TEST(ListPfs, NoneAreNotSeenWhereDescriptorsAreScarce) {
    HostTree const tree;
    tree.add_pf("0000:81:00.1", 8);
    tree.add_vf("0000:81:00.1", 0, "0000:81:10.0");
    test::NoDescriptorsLeft const none;
    auto const pfs = list_pfs(tree.roots());
    ASSERT_FALSE(pfs);
    EXPECT_EQ(pfs.error().causes.at(0).code, "EMFILE");
    EXPECT_FALSE(list_vfs(tree.roots(), pci("0000:81:00.1")));
}

TEST(ListVfs, ComeFromTheLinks) {
    HostTree const tree;
    tree.add_pf("0000:01:00.0", 64);
    tree.add_vf("0000:01:00.0", 0, "0000:01:10.0");
    tree.add_vf("0000:01:00.0", 10, "0000:02:11.4");  // another bus: never arithmetic
    tree.write(tree.device("0000:01:00.0") / "virtfnx", "");
    tree.write(tree.device("0000:01:00.0") / "virtfn1x", "");
    auto const vfs = list_vfs(tree.roots(), pci("0000:01:00.0")).value();
    EXPECT_EQ(vfs, (VfAddresses{{0, pci("0000:01:10.0")}, {10, pci("0000:02:11.4")}}));
    EXPECT_EQ(vf_address(tree.roots(), {pci("0000:01:00.0"), 10}).value(), pci("0000:02:11.4"));
    auto const missing = vf_address(tree.roots(), {pci("0000:01:00.0"), 3});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().problem, Problem::not_found);
    EXPECT_EQ(missing.error().detail, "0000:01:00.0 has no VF 3; it has 2 VFs");
    EXPECT_EQ(list_vfs(tree.roots(), pci("0000:05:00.0")).error().problem, Problem::not_found);
}

TEST(Device, FactsOrNothing) {
    HostTree const tree;
    tree.add_pf("0000:01:00.0", 7);
    auto const pf = pci("0000:01:00.0");
    auto const roots = tree.roots();
    EXPECT_EQ(driver_of(roots, pf), std::nullopt);
    EXPECT_EQ(iommu_group_of(roots, pf), std::nullopt);
    EXPECT_EQ(numa_node_of(roots, pf), std::nullopt) << "-1 is no node";
    EXPECT_FALSE(bound_to_vfio(roots, pf));
    tree.bind("0000:01:00.0", "mlx5_vfio_pci");
    tree.put_in_group("0000:01:00.0", 42);
    tree.write(tree.device("0000:01:00.0") / "numa_node", "1\n");
    tree.write(tree.device("0000:01:00.0") / "vfio-dev/vfio3/uevent", "");
    EXPECT_EQ(driver_of(roots, pf), "mlx5_vfio_pci");
    EXPECT_EQ(iommu_group_of(roots, pf), 42U);
    EXPECT_EQ(numa_node_of(roots, pf), 1);
    EXPECT_TRUE(bound_to_vfio(roots, pf));
    EXPECT_EQ(total_vfs(roots, pf).value(), 7);
    tree.write(tree.device("0000:01:00.0") / "sriov_totalvfs", "70000\n");
    EXPECT_FALSE(total_vfs(roots, pf));
}

}  // namespace
}  // namespace vfmgr
