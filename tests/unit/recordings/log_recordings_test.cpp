// SPDX-License-Identifier: Apache-2.0
// Kernel logs of real machines: each log's notable lines are reported for a machine with it.
// vfio-intx-shared-irq.txt is about whole functions that share a pin interrupt, in the kernel's and
// QEMU's words; VFs have no pin, so no rule checks it.
#include "tests/unit/recordings/recordings.hpp"
#include "vfmgr/machine/port_lines.hpp"

namespace vfmgr::checks::recordings {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogRecordings : public Recordings {
  protected:
    static std::string log(std::string const& name) { return content("05-kernel-log/" + name); }
    static Function pf(std::string address) {
        return {.address = std::move(address), .total_vfs = 8, .driver = "mlx5_core"};
    }
};

TEST_F(LogRecordings, VfWithoutAnIommuGroupCannotBeAttached) {
    // Below the bad attempt is one of a good kernel.
    auto text = log("mlx5-recreate-vfs-fails-iommu.txt");
    text.resize(text.rfind("[  164.") == text.npos ? text.size() : text.find("[  164.252254]"));
    auto const facts = machine_with(
        {pf("0000:81:00.0"),
         {.address = "0000:81:00.2", .device = 0x101a, .pf = "0000:81:00.0"},
         {.address = "0000:81:00.3", .device = 0x101a, .group = "53", .pf = "0000:81:00.0"}},
        text);
    auto const told = said(facts, "sriov.resources");
    EXPECT_THAT(told, HasSubstr("0000:81:00.2 has no IOMMU group, so it can't be attached"));
    EXPECT_THAT(told, HasSubstr("Failed to add to iommu group 52: -16"));
}

TEST_F(LogRecordings, IommuStoppedTheNic) {
    auto const told =
        said(machine_with({pf("0000:c1:00.0")}, log("amdvi-io-page-fault-mlx5-wc-error4.txt")),
             "log.iommu_fault");
    EXPECT_THAT(told, HasSubstr("warning"));
    EXPECT_THAT(told, HasSubstr("0000:c1:00.0"));
    EXPECT_THAT(told, HasSubstr("0x24d08000"));
}

TEST_F(LogRecordings, NoRoomForTheVfsMemory) {
    auto const facts =
        machine_with({pf("0006:03:00.0"), pf("0006:03:00.1"), {.address = "0006:03:00.2"}},
                     log("mlx5-vf-bar-no-space-and-iomem.txt"));
    auto const told = said(facts, "sriov.resources");
    EXPECT_THAT(told, HasSubstr("failed   sriov.resources 0006:03:00.0: there is no room"));
    EXPECT_THAT(told, HasSubstr("failed   sriov.resources 0006:03:00.1: there is no room"));
    EXPECT_THAT(told, HasSubstr("VF BAR 0"));
}

TEST_F(LogRecordings, NotEnoughMmioInSyslogsForm) {
    auto const facts = machine_with({{.address = "0000:04:00.0",
                                      .vendor = 0x8086,
                                      .device = 0x1528,
                                      .total_vfs = 63,
                                      .driver = "ixgbe"},
                                     {.address = "0000:04:00.1",
                                      .vendor = 0x8086,
                                      .device = 0x1528,
                                      .total_vfs = 63,
                                      .driver = "ixgbe"}},
                                    log("ixgbe-not-enough-mmio.txt"));
    auto const told = said(facts, "sriov.resources");
    EXPECT_THAT(told, HasSubstr("failed   sriov.resources 0000:04:00.0: there is no room"));
    EXPECT_THAT(told, HasSubstr("pci=realloc"));
}

TEST_F(LogRecordings, BusNumbersAreNotMemory) {
    auto const facts = machine_with({{.address = "0000:07:00.0",
                                      .vendor = 0x8086,
                                      .device = 0x10c9,
                                      .total_vfs = 7,
                                      .driver = "igb"}},
                                    log("igb-bus-number-out-of-range.txt"));
    auto const told = said(facts, "sriov.resources");
    EXPECT_THAT(told, HasSubstr("there are no bus numbers for the VFs"));
    EXPECT_THAT(told, Not(HasSubstr("address space")));
}

TEST_F(LogRecordings, FirstVfDidNotAnswer) {
    auto const facts = machine_with({pf("0000:01:00.0"), pf("0000:01:00.1")},
                                    log("mlx5-second-pf-unknown-header-7f.txt"));
    auto const told = said(facts, "sriov.resources");
    EXPECT_THAT(told, HasSubstr("0000:01:00.1: the first VF did not answer"));
    EXPECT_THAT(told, HasSubstr("ARI"));
    EXPECT_THAT(told, Not(HasSubstr("0000:01:00.0: ")));
}

TEST_F(LogRecordings, VfsBeyondTheReachOfTheirPortAreDead) {
    auto const text = log("mlx5-enable-hca-timeout-and-rev-ff-vfs.txt");
    auto functions = functions_in(text);
    ASSERT_GE(functions.size(), 10U);
    for (auto& one : functions)
        if (one.device == 0x1015)
            one.total_vfs = 32;
        else
            one.pf = "0000:0b:00.0";
    auto const told = said(machine_with(functions, text), "sriov.resources");
    EXPECT_THAT(told, HasSubstr("0000:0b:01.0"));
    EXPECT_THAT(told, HasSubstr("VFs can't be used"));
    EXPECT_THAT(told, HasSubstr("does not answer"));
    EXPECT_THAT(told, Not(HasSubstr("0000:0b:00.7")));
    // A device that answers on PCI, while the card's firmware does not.
    auto const timed_out = machine_with(
        {pf("0000:0b:00.0"), {.address = "0000:0b:06.0", .device = 0x1016, .pf = "0000:0b:00.0"}},
        text);
    EXPECT_THAT(said(timed_out, "sriov.resources"), HasSubstr("ENABLE_HCA timed out"));
}

TEST_F(LogRecordings, VfsWithoutDriverAreNoFault) {
    auto const facts =
        machine_with({pf("0000:01:00.0"),
                      {.address = "0000:01:00.1", .device = 0x101c, .pf = "0000:01:00.0"},
                      {.address = "0000:01:00.2", .device = 0x101c, .pf = "0000:01:00.0"}},
                     log("mlx5-autoprobe-off-create.txt"));
    EXPECT_THAT(said(facts, "sriov.resources"), HasSubstr("1 ok"));
    EXPECT_THAT(said(facts, "log.mlx5"), HasSubstr("1 ok"));
    EXPECT_THAT(said(facts, "sriov.vf_driver"), Not(HasSubstr("failed  ")));
}

TEST_F(LogRecordings, PortBehindANarrowLink) {
    auto facts = machine_with({pf("0001:43:00.0")}, log("mlx5-pcie-x8-limited.txt"));
    auto const device = std::string("/sys/bus/pci/devices/0001:43:00.0/");
    for (auto const& [file, text] :
         {std::pair("current_link_speed", "8.0 GT/s PCIe\n"),
          std::pair("max_link_speed", "8.0 GT/s PCIe\n"), std::pair("current_link_width", "8\n"),
          std::pair("max_link_width", "16\n")})
        facts.files[device + file] = {text, 0};
    auto const told = said(facts, "pci.link");
    EXPECT_THAT(told, HasSubstr("warning  pci.link 0001:43:00.0"));
    EXPECT_THAT(told, HasSubstr("limited by 8.0 GT/s PCIe x8 link at 0001:42:01.0"));
    // The slot has the power that the card requires.
    EXPECT_THAT(said(facts, "log.mlx5"), HasSubstr("1 ok"));
}

TEST_F(LogRecordings, ModulesOfAnotherStack) {
    EXPECT_THAT(said(machine_with({pf("0000:41:00.0")}, log("peermem-symbol-version.txt")),
                     "stack.symbols"),
                HasSubstr("nvidia_peermem"));
    EXPECT_THAT(said(machine_with({pf("0000:41:00.0")}, log("bluerdma-symbol-version-ofed.txt")),
                     "stack.symbols"),
                HasSubstr("bluerdma"));
    auto const rxe =
        said(machine_with({pf("0000:41:00.0")}, log("rxe-kernel-lines.txt")), "stack.symbols");
    EXPECT_THAT(rxe, HasSubstr("failed   stack.symbols rdma_rxe"));
    EXPECT_THAT(rxe, HasSubstr("udp_sock_create4"));
}

TEST_F(LogRecordings, PeermemMetContextsThatAreGoneInThreeForms) {
    for (auto const* const name :
         {"peermem-invalid-context-dmesg.txt", "peermem-invalid-context-kmsg.txt",
          "peermem-invalid-context-mixed.txt"})
        EXPECT_THAT(said(machine_with({pf("0000:41:00.0")}, log(name)), "log.peermem"),
                    HasSubstr("warning  log.peermem: nvidia-peermem found registrations that were "
                              "already gone ("))
            << name;
}

TEST_F(LogRecordings, CrashHasNoWordOfTheNic) {
    auto const text = log("pstore-crash-dmesg-mlx5.txt");
    auto const facts = machine_with({pf("0000:41:00.0"), pf("0000:41:00.1")}, text);
    EXPECT_THAT(said(facts, "log.mlx5"), HasSubstr("1 ok"));
    auto const parsed = parse_kernel_log(text);
    auto const* const unplugged = find_line(parsed, {"module 1, Cable unplugged"});
    ASSERT_NE(unplugged, nullptr);
    EXPECT_TRUE(unplugged->text.starts_with("mlx5_core 0000:41:00.1: "));
    EXPECT_GT(unplugged->seconds, 2.9);
}

TEST_F(LogRecordings, GpuHostLacksPowerAndTwoCables) {
    auto const text = log("gpu-host-full-dmesg.txt.gz");
    std::set<std::string> addresses;
    auto const parsed = parse_kernel_log(text);
    EXPECT_GT(parsed.lines.size(), 2300U);
    int plugged = 0;
    std::vector<std::string> unplugged;
    for (auto const& line : parsed.lines)
        if (auto const event = parse_module_event(line.text); event && event->pci) {
            addresses.insert(to_string(*event->pci));
            if (event->plugged())
                ++plugged;
            else
                unplugged.push_back(to_string(*event->pci));
        }
    EXPECT_EQ(addresses.size(), 12U);
    EXPECT_EQ(plugged, 10);
    EXPECT_THAT(unplugged, testing::ElementsAre("0000:1b:00.1", "0000:9d:00.1"));
    std::vector<Function> functions;
    for (auto const& address : addresses) functions.push_back(pf(address));
    auto const told = said(machine_with(functions, text), "log.mlx5");
    EXPECT_THAT(told, HasSubstr("the slot offers 27 W"));
    EXPECT_THAT(told, HasSubstr("12 warning"));
}

TEST_F(LogRecordings, RealLinesAndNearMisses) {
    auto const told = said(machine_with({pf("0000:5c:00.0"), pf("0000:d2:00.0")},
                                        log("mlx5-lines-real-and-near-misses.txt")),
                           "log.mlx5");
    EXPECT_THAT(told, HasSubstr("too hot"));
    EXPECT_THAT(told, HasSubstr("0000:5c:00.0: the slot offers 27 W"));
    // An access that the firmware refused is an everyday answer; 999 W is not an mlx5 complaint.
    EXPECT_THAT(told, Not(HasSubstr("0000:d2:00.0")));
    EXPECT_THAT(told, Not(HasSubstr("999")));
    EXPECT_THAT(told, Not(HasSubstr("ACCESS_REG")));
}

TEST_F(LogRecordings, GuestDoesNotFindItsSecondBar) {
    auto facts = machine_with({{.address = "0000:01:00.0", .device = 0x1007},
                               {.address = "0000:02:00.0", .device = 0x1007}},
                              log("mlx4-missing-uar.txt"));
    facts.machine = CheckedMachine::guest;
    auto const told = said(facts, "log.mlx5");
    EXPECT_THAT(told, HasSubstr("failed   log.mlx5 0000:01:00.0"));
    EXPECT_THAT(told, HasSubstr("failed   log.mlx5 0000:02:00.0"));
    EXPECT_THAT(told, HasSubstr("q35"));
}

TEST_F(LogRecordings, IpoibIsMissing) {
    auto const told = said(
        machine_with({pf("0000:01:00.0")}, log("mlx5-cx4-ipoib-alloc-failed.txt")), "log.mlx5");
    EXPECT_THAT(told, HasSubstr("warning  log.mlx5 0000:01:00.0"));
    EXPECT_THAT(told, HasSubstr("IPoIB"));
}

TEST_F(LogRecordings, InterruptRemappingOnAmdIsNoComplaint) {
    auto const facts = machine_with({pf("0000:41:00.0")}, log("amdvi-on-interrupt-remapping.txt"));
    EXPECT_THAT(said(facts, "log.iommu_fault"), HasSubstr("1 ok"));
    EXPECT_EQ(parse_kernel_log(log("amdvi-on-interrupt-remapping.txt")).lines.size(), 4U);
}

TEST_F(LogRecordings, SharedPinInterruptsAreReadAndPassed) {
    auto const facts = machine_with({{.address = "0000:01:00.0", .device = 0x1007}},
                                    log("vfio-intx-shared-irq.txt"));
    EXPECT_THAT(said(facts, "log.mlx5"), HasSubstr("1 ok"));
}

}  // namespace
}  // namespace vfmgr::checks::recordings
