// SPDX-License-Identifier: Apache-2.0
// Which RDMA drivers a machine runs: the kernel's own or OFED's (DOCA), where each module's file
// is, what was built against what. For facts that several rules use; parsers for fuzzers.
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

struct OfedVersion {
    int major = 0, minor = 0;
    std::string text;  // "24.10-3.2.5"
    bool operator==(OfedVersion const&) const = default;
};

struct Ofed {
    std::optional<OfedVersion> installed;  // as its own tool reports
    std::optional<OfedVersion> running;    // as mlx5_core (mlx4_core) reports
    std::vector<Evidence> evidence;
};
[[nodiscard]] Ofed read_ofed(Machine const& machine);

// Functions of ConnectX NICs that this machine itself uses: not those attached to VMs.
[[nodiscard]] std::vector<PciDevice const*> own_connectx(Machine const& machine);
// The kernel's driver of a ConnectX: "mlx5_core", "mlx4_core"; and its RDMA half.
[[nodiscard]] std::string_view driver_of_connectx(PciDevice const& device);
[[nodiscard]] std::string_view rdma_driver_of_connectx(PciDevice const& device);

// Loaded, or built into the kernel.
[[nodiscard]] bool module_present(Machine const& machine, std::string_view module);
// True if the module's file exists, or the module is built in; "rdma_rxe".
[[nodiscard]] Known<bool> module_exists(Machine const& machine, std::string_view module);
// Its file below /lib/modules/RELEASE: "updates/dkms/mlx5_core.ko.zst".
[[nodiscard]] std::optional<std::string_view> module_file(Machine const& machine,
                                                          std::string_view module);
[[nodiscard]] bool is_debian(Machine const& machine);

// --- parsers ---

// "24.10-3.2.5", "MLNX_OFED_LINUX-5.4-3.0.3.0:", "OFED-internal-4.9-5.1.0:". Not the kernel's own
// "5.0-0", and not a kernel release, which newer kernels print instead.
[[nodiscard]] std::optional<OfedVersion> parse_ofed_version(std::string_view text);
// "6.1.0-41-amd64" is at least 5.12; nullopt if it is no release.
[[nodiscard]] std::optional<bool> release_is_at_least(std::string_view release, int major,
                                                      int minor);
// A line of modules.dep: the module's file, and the files that it needs.
struct ModuleFile {
    std::string_view path;
    std::vector<std::string_view> needs;
};
[[nodiscard]] std::optional<ModuleFile> find_module(std::string_view modules_dep,
                                                    std::string_view module);
// "0x1b0c9b5a<tab>symbol…": lines of Module.symvers and of modprobe --dump-modversions.
[[nodiscard]] std::optional<std::uint32_t> find_symbol_version(std::string_view table,
                                                               std::string_view symbol);
// "ffffffffc0a1b2c0 T symbol<tab>[ib_core]": the module that exports the symbol.
[[nodiscard]] std::optional<std::string_view> find_kernel_symbol(std::string_view kallsyms,
                                                                 std::string_view symbol);

}  // namespace vfmgr::checks
