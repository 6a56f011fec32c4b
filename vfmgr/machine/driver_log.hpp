// SPDX-License-Identifier: Apache-2.0
// Parses the kernel's log in any form: records of /dev/kmsg, dmesg with its options, journalctl,
// syslog's files. Returns views of the text, which outlives them; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr::checks {

struct LogLine {
    double seconds = 0;  // since boot; 0 if the log has none, or has a date
    std::string_view text;
};

struct KernelLog {
    std::vector<LogLine> lines;
    bool from_boot = false;  // nothing has been overwritten
};

// Keeps the kernel's text of each line: what follows level, time, host and "kernel: ". Drops other
// programs' lines in syslog's files.
[[nodiscard]] KernelLog parse_kernel_log(std::string_view text);

// Parses what drivers print into the kernel's log, so strictly that a merely similar line does not
// match. A line may have "host kernel: " before it. Returns views of the line; any thread.

// "mlx5_core 0000:5c:00.0: poll_health:801:(pid 0): text"; old kernels name no device there.
struct Mlx5Line {
    std::optional<PciAddress> device;
    std::string_view function;  // "poll_health"
    std::string_view text;
};
[[nodiscard]] std::optional<Mlx5Line> parse_mlx5_line(std::string_view line);

// "mlx4_core 0000:01:00.0: text".
struct DeviceLine {
    PciAddress device;
    std::string_view text;
};
[[nodiscard]] std::optional<DeviceLine> parse_device_line(std::string_view line,
                                                          std::string_view driver);

// "nvidia_peermem: disagrees about version of symbol X", "rdma_rxe: Unknown symbol X (err -2)".
struct SymbolLine {
    std::string_view module, symbol;
    bool other_version = false;  // the symbol exists, in another version
};
[[nodiscard]] std::optional<SymbolLine> parse_symbol_line(std::string_view line);

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
