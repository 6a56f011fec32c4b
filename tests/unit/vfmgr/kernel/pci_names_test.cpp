// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pci.hpp"

#include "host_tree.hpp"

namespace vfmgr {
namespace {

using test::HostTree;
using test::pci;

TEST(PciNameBook, KnowsCommonDevicesAndPrintsNumbersOfOthers) {
    HostTree const tree;
    tree.add_device("0000:01:00.0");
    tree.add_device("0000:02:00.0");
    tree.write(tree.device("0000:02:00.0") / "vendor", "0xff77\n");
    tree.write(tree.device("0000:02:00.0") / "device", "0x0abc\n");
    PciNameBook book;
    auto const known = book.look_up(tree.roots(), pci("0000:01:00.0")).value();
    EXPECT_EQ(
        known,
        (PciNames{"Intel Corporation", "82576 Gigabit Network Connection", {0x8086, 0x10c9}}));
    EXPECT_EQ(book.look_up(tree.roots(), pci("0000:01:00.0")).value(), known);
    auto const unknown = book.look_up(tree.roots(), pci("0000:02:00.0")).value();
    EXPECT_EQ(unknown, (PciNames{"ff77", "0abc", {0xff77, 0x0abc}}));
    EXPECT_FALSE(book.look_up(tree.roots(), pci("0000:03:00.0")));
}

}  // namespace
}  // namespace vfmgr
