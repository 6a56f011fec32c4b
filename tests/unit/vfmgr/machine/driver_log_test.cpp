// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/driver_log.hpp"

#include <gtest/gtest.h>

namespace vfmgr::checks {
namespace {

TEST(Mlx5Line, HasDeviceFunctionAndText) {
    auto const said = parse_mlx5_line(
        "mlx5_core 0000:0d:00.0: poll_health:801:(pid 0): device's health compromised");
    ASSERT_TRUE(said);
    EXPECT_EQ(said->device, (PciAddress{0, 0x0d, 0, 0}));
    EXPECT_EQ(said->function, "poll_health");
    EXPECT_EQ(said->text, "device's health compromised");
}

TEST(Mlx5Line, MayLackTheDeviceAndMayFollowTheHostsName) {
    auto const said =
        parse_mlx5_line("node7 kernel: mlx5_port_module_event:1131:(pid 0): Port module event");
    ASSERT_TRUE(said);
    EXPECT_FALSE(said->device);
    EXPECT_EQ(said->function, "mlx5_port_module_event");
}

TEST(Mlx5Line, IsNoOtherLine) {
    for (auto const line :
         {"", "mlx5_core", "mlx5_core: text", "mlx5_core 0000:0d:00.0: text",
          "mlx5_core 0000:0d:00.0: f:12: text", "mlx5_core 0000:0d:00.0: f:x:(pid 0): text",
          "mlx5_core 0000:0d:00.0 eth0: Link up", "mlx5_core 0d: f:1:(pid 0): text",
          "mlx5_core 0000:0d:00.0: f:1:(pid 0) text", "vmlx5_f:1:(pid 0): text",
          "before it mlx5_core 0000:0d:00.0: f:1:(pid 0): text"})
        EXPECT_FALSE(parse_mlx5_line(line)) << line;
}

TEST(SymbolLine, TellsAnotherVersionFromNone) {
    auto const differs = parse_symbol_line("a_b: disagrees about version of symbol ib_query_port");
    ASSERT_TRUE(differs);
    EXPECT_EQ(differs->module, "a_b");
    EXPECT_EQ(differs->symbol, "ib_query_port");
    EXPECT_TRUE(differs->other_version);
    auto const lacks = parse_symbol_line("rdma_rxe: Unknown symbol udp_sock_create6 (err -2)");
    ASSERT_TRUE(lacks);
    EXPECT_EQ(lacks->symbol, "udp_sock_create6");
    EXPECT_FALSE(lacks->other_version);
}

TEST(OtherKernelLine, HasTheRelease) {
    auto const line = parse_other_kernel_line(
        "mst_pci: version magic '5.14.0-1.el9.x86_64 SMP preempt mod_unload modversions ' should "
        "be "
        "'5.14.0-2.el9.x86_64 SMP preempt mod_unload modversions '");
    ASSERT_TRUE(line);
    EXPECT_EQ(line->module, "mst_pci");
    EXPECT_EQ(line->built_for, "5.14.0-1.el9.x86_64");
    for (auto const* const other :
         {"version magic '5.14' should be '5.15'", "a b: version magic '5.14' should be '5.15'",
          "mst_pci: version magic '5.14'", "mst_pci: version magic 5.14 should be 5.15"})
        EXPECT_FALSE(parse_other_kernel_line(other)) << other;
}

TEST(SymbolLine, IsNoOtherLine) {
    for (auto const line :
         {"", "a:", "a: disagrees with b", "a: disagrees about version of symbol ",
          "a: disagrees about version of symbol two words", "a: Unknown symbol b and more",
          "two words: Unknown symbol b (err -2)", "a: Unknown symbol  (err -2)",
          ": Unknown symbol b (err -2)"})
        EXPECT_FALSE(parse_symbol_line(line)) << line;
}

struct Fault {
    char const* line;
    PciAddress device;
    bool domain_known;
    char const* address;
};

TEST(IommuFault, IsReadInEachForm) {
    for (auto const& one : {
             Fault{"mlx5_core 0002:c1:00.1: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002f "
                   "address=0x24d08000 flags=0x0000]",
                   {2, 0xc1, 0, 1},
                   true,
                   "0x24d08000"},
             Fault{"AMD-Vi: Event logged [IO_PAGE_FAULT device=c1:00.0 domain=0x000f "
                   "address=0xfdf8 flags=0x20]",
                   {0, 0xc1, 0, 0},
                   false,
                   "0xfdf8"},
             Fault{"DMAR: [DMA Write NO_PASID] Request device [5e:00.1] fault addr 0xf42 [fault "
                   "reason 0x05] PTE Write access is not set",
                   {0, 0x5e, 0, 1},
                   false,
                   "0xf42"},
             Fault{"DMAR:[DMA Read] Request device [5e:1f.7] fault addr fd000000",
                   {0, 0x5e, 0x1f, 7},
                   false,
                   "fd000000"},
         }) {
        auto const fault = parse_iommu_fault(one.line);
        ASSERT_TRUE(fault) << one.line;
        EXPECT_EQ(fault->device, one.device) << one.line;
        EXPECT_EQ(fault->domain_known, one.domain_known) << one.line;
        EXPECT_EQ(fault->address, one.address) << one.line;
    }
}

TEST(IommuFault, IsNoOtherLine) {
    for (auto const line :
         {"", "DMAR: DRHD: handling fault status reg 2", "AMD-Vi: Interrupt remapping enabled",
          "DMAR: [INTR-REMAP] Request device [5e:00.1] fault index 0x10",
          "DMAR: [DMA Write] Request device [5e:00.1] and no more",
          "DMAR: [DMA Write] Request device [nowhere] fault addr 0x1",
          "AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1 address=0x2 flags=0]",
          "AMD-Vi: Event logged [IO_PAGE_FAULT device=c1:00.0 domain=0x1]",
          "x AMD-Vi: Event logged [IO_PAGE_FAULT device=c1:00.0 address=0x2"})
        EXPECT_FALSE(parse_iommu_fault(line)) << line;
}

TEST(Texts, OfTheDriverAreReadToTheLetter) {
    EXPECT_EQ(parse_slot_power("Detected insufficient power on the PCIe slot (27W)."), 27);
    for (auto const text : {"Detected insufficient power on the PCIe slot (27 W).",
                            "Detected insufficient power on the PCIe slot (27.5W).",
                            "Detected insufficient power on the PCIe slot (W).",
                            "It Detected insufficient power on the PCIe slot (27W)."})
        EXPECT_FALSE(parse_slot_power(text)) << text;
    auto const error =
        parse_module_error("Port module event[error]: module 1, Cable error, High Temperature");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->module, 1);
    EXPECT_EQ(error->error, "High Temperature");
    for (auto const text : {"Port module event[warning]: module 1, Cable error, High Temperature",
                            "Port module event[error]: module 2, High Temperature detected",
                            "Port module event: module 0, Cable plugged"})
        EXPECT_FALSE(parse_module_error(text)) << text;
    EXPECT_EQ(parse_health_severity("Health issue observed, unrecognized error, severity(3) E:"),
              3);
    EXPECT_FALSE(parse_health_severity("Health issue observed, unrecognized error"));
}

}  // namespace
}  // namespace vfmgr::checks
