// SPDX-License-Identifier: Apache-2.0
// Parses what drivers print into the kernel's log, so strictly that a merely similar line does not
// match. A line may have "host kernel: " before it. Returns views of the line; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "api/types/addresses.hpp"

namespace vfmgr::checks {

// "mlx5_core 0000:5c:00.0: poll_health:801:(pid 0): text"; old kernels name no device there.
struct Mlx5Line {
    std::optional<PciAddress> device;
    std::string_view function;  // "poll_health"
    std::string_view text;
};
[[nodiscard]] std::optional<Mlx5Line> parse_mlx5_line(std::string_view line);

// "mlx4_core 0000:01:00.0: text", as dev_err() prints it, and "ice 0000:4b:00.0 ens4: text", as
// netdev_err() does.
struct DeviceLine {
    std::string_view driver;
    PciAddress device;
    std::string_view text;
};
[[nodiscard]] std::optional<DeviceLine> parse_device_line(std::string_view line);

// "mlx5_core: probe of 0000:5c:00.0 failed with error -12"; later kernels print "mlx5_core
// 0000:5c:00.0: probe with driver mlx5_core failed with error -12" (drivers/base/dd.c).
struct ProbeFailure {
    std::string_view driver;
    PciAddress device;
    int error = 0;  // an errno, positive
};
[[nodiscard]] std::optional<ProbeFailure> parse_probe_failure(std::string_view line);

// A command that a ConnectX's firmware refused: "CREATE_EQ(0x301) op_mod(0x0) failed, status bad
// resource(0x5), syndrome (0x73ac13), err(-22)" (mlx5/core/cmd.c). What a syndrome means is known
// to the vendor alone.
struct RefusedCommand {
    std::string_view command, opcode, status, syndrome;
};
[[nodiscard]] std::optional<RefusedCommand> parse_refused_command(std::string_view text);

// "nvidia_peermem: disagrees about version of symbol X", "rdma_rxe: Unknown symbol X (err -2)".
struct SymbolLine {
    std::string_view module, symbol;
    bool other_version = false;  // the symbol exists, in another version
};
[[nodiscard]] std::optional<SymbolLine> parse_symbol_line(std::string_view line);

// "mst_pci: version magic '5.15.0-119-generic SMP …' should be '5.15.0-126-generic SMP …'".
struct OtherKernelLine {
    std::string_view module, built_for;  // a release
};
[[nodiscard]] std::optional<OtherKernelLine> parse_other_kernel_line(std::string_view line);

// An access that an IOMMU blocked: "AMD-Vi: Event logged [IO_PAGE_FAULT …", "DMAR: [DMA Write]
// Request device [5e:00.1] fault addr …".
struct IommuFault {
    PciAddress device;
    bool domain_known = false;  // false: the log left the PCI domain out
    std::string_view address;   // "0x24d08000", "fd000000"
};
[[nodiscard]] std::optional<IommuFault> parse_iommu_fault(std::string_view line);

// Returns the watts of "Detected insufficient power on the PCIe slot (27W).".
[[nodiscard]] std::optional<int> parse_slot_power(std::string_view text);
// "Port module event[error]: module 0, Cable error, High Temperature".
struct ModuleError {
    int module = 0;
    std::string_view error;
};
[[nodiscard]] std::optional<ModuleError> parse_module_error(std::string_view text);
// "Health issue observed, firmware internal error, severity(3) ERROR:": the syslog severity.
[[nodiscard]] std::optional<int> parse_health_severity(std::string_view text);

}  // namespace vfmgr::checks
