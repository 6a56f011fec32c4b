// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/rdma_stack.hpp"

#include <gtest/gtest.h>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/machine/pci_config.hpp"

namespace vfmgr::checks {
namespace {

TEST(OfedVersion, IsReadInEachForm) {
    for (auto const text : {"24.10-3.2.5", "24.10-3.2.5\n", "OFED-internal-24.10-3.2.5:",
                            "MLNX_OFED_LINUX-24.10-3.2.5:\n", "MLNX_OFED-24.10-3.2.5 (OFED-x):"})
        EXPECT_EQ(parse_ofed_version(text), (OfedVersion{24, 10, "24.10-3.2.5"})) << text;
}

TEST(OfedVersion, IsNotTheKernelsOwn) {
    for (auto const text : {"", "5.0-0", "3.0-1", "6.14.0-63.fc42.x86_64", "4.15.0-55-generic",
                            "6.1.0-41-amd64", "24.10", "24-1.2", "a.10-1.2.3", "24.10-1.2.",
                            "24.10-.1", "-1.2.3", "24.10-1.2-x", "1234.10-1.2.3"})
        EXPECT_FALSE(parse_ofed_version(text)) << text;
}

TEST(Release, IsComparedByItsFirstNumbers) {
    EXPECT_EQ(release_is_at_least("6.1.0-41-amd64", 5, 12), true);
    EXPECT_EQ(release_is_at_least("5.12-rc1", 5, 12), true);
    EXPECT_EQ(release_is_at_least("5.4.0-125-generic", 5, 12), false);
    EXPECT_EQ(release_is_at_least("4.18.0-553.el8_10.x86_64", 5, 12), false);
    for (auto const release : {"", "6", "x.1", "6.x"})
        EXPECT_FALSE(release_is_at_least(release, 5, 12)) << release;
}

TEST(ModuleFile, IsFoundByEitherWayOfWriting) {
    constexpr auto listed =
        "kernel/a/not-nvidia-peermem.ko: \n"
        "updates/dkms/nvidia-peermem.ko.zst: updates/dkms/nvidia.ko.zst kernel/b/ib_core.ko\n"
        "kernel/c/last.ko:";
    auto const found = find_module(listed, "nvidia_peermem");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->path, "updates/dkms/nvidia-peermem.ko.zst");
    ASSERT_EQ(found->needs.size(), 2U);
    EXPECT_EQ(found->needs[1], "kernel/b/ib_core.ko");
    EXPECT_TRUE(find_module(listed, "last"));
    EXPECT_FALSE(find_module(listed, "ib_core"));
    EXPECT_FALSE(find_module(listed, "peermem"));
}

TEST(SymbolVersion, IsReadFromBothTables) {
    EXPECT_EQ(find_symbol_version("0x0\tother\n0x4d81f6b2\tsymbol\tpath/ib_core\tEXPORT_SYMBOL\t\n",
                                  "symbol"),
              0x4d81f6b2U);
    EXPECT_EQ(find_symbol_version("0xffffffff\tsymbol", "symbol"), 0xffffffffU);
    for (auto const table :
         {"", "0x1\tsymbol_", "symbol\t0x1", "1\tsymbol", "0x1ffffffff\tsymbol", "0x\tsymbol"})
        EXPECT_FALSE(find_symbol_version(table, "symbol")) << table;
}

TEST(KernelSymbol, HasAnOwner) {
    EXPECT_EQ(find_kernel_symbol("ffff0 t a\nffff0 T b\t[ib_core]\n", "b"), "ib_core");
    EXPECT_EQ(find_kernel_symbol("ffff0 T b\n", "b"), "kernel");
    EXPECT_FALSE(find_kernel_symbol("ffff0 T __crc_b\t[ib_core]\n", "b"));
    EXPECT_FALSE(find_kernel_symbol("b", "b"));
}

TEST(NvidiaDriver, IsOpenOrProprietary) {
    EXPECT_EQ(parse_nvidia_driver("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                                  "580.65.06  Release Build  (b@example)  Sun Jul 27\nGCC 9.9.9"),
              (NvidiaDriver{"580.65.06", 580, true}));
    EXPECT_EQ(
        parse_nvidia_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon"),
        (NvidiaDriver{"550.144.03", 550, false}));
    for (auto const text : {"", "550.144.03", "NVRM version: NVIDIA UNIX x86_64 Kernel Module",
                            "NVRM version: none\n550.144.03"})
        EXPECT_FALSE(parse_nvidia_driver(text)) << text;
}

TEST(PciResource, IsReadLineByLine) {
    auto const regions = parse_pci_resource(
        "0x00000000b0000000 0x00000000b0ffffff 0x0000000000040200\n"
        "0x0000210000000000 0x0000211fffffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[0].bytes(), 16U << 20U);
    EXPECT_FALSE(regions[0].is_prefetchable());
    EXPECT_EQ(regions[1].bytes(), std::uint64_t{128} << 30U);
    EXPECT_TRUE(regions[1].is_prefetchable() && regions[1].is_memory());
    EXPECT_FALSE(regions[2].is_assigned());
    for (auto const text : {"", "0x1 0x2\n", "0x1 0x2 0x3 0x4\n", "1 2 3\n", "0x1  0x2 0x3\n"})
        EXPECT_TRUE(parse_pci_resource(text).empty()) << text;
}

TEST(NumberList, HasRanges) {
    EXPECT_TRUE(number_list_has("0-3,8", 2));
    EXPECT_TRUE(number_list_has("0-3,8", 8));
    for (auto const list : {"", "x", "3-1", "0-1,4-", "-", "99999999999-1"})
        EXPECT_FALSE(number_list_has(list, 2)) << list;
}

}  // namespace
}  // namespace vfmgr::checks
