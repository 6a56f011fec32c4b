// SPDX-License-Identifier: Apache-2.0
// Crashes and hangs of the kernel in the driver of a NIC or GPU. A driver keeps the locks that it
// held: binding its devices again hangs too, and only a reboot helps.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t trace_lines_max = 80;

// Modules of NICs, of RDMA, of VFIO and of NVIDIA's GPUs.
constexpr std::string_view drivers =
    " mlx5_core mlx5_ib mlx4_core mlx4_ib mlx4_en i40e iavf ice irdma ixgbe ixgbevf igb igbvf "
    "bnxt_en bnxt_re qed qede qedr cxgb4 iw_cxgb4 ena efa mana mana_ib ib_core ib_uverbs ib_cm "
    "iw_cm rdma_cm rdma_ucm ib_umad ib_ipoib rdma_rxe siw vfio vfio_pci vfio_pci_core "
    "vfio_iommu_type1 mlx5_vfio_pci nvidia nvidia_uvm nvidia_peermem nv_peer_mem gdrdrv ";

enum class Crash { oops, hang, warning };

// arch/*/mm/fault.c, lib/bug.c and arch/*/kernel/traps.c; kernel/panic.c, kernel/hung_task.c
// and kernel/watchdog.c.
std::optional<Crash> begins(std::string_view text) {
    if (text.starts_with("BUG: ") && !contains(text, "soft lockup")) return Crash::oops;
    if (text.starts_with("kernel BUG at ") || text.starts_with("general protection fault") ||
        text.starts_with("Oops: ") || text.starts_with("Unable to handle kernel ") ||
        text.starts_with("Kernel panic - not syncing"))
        return Crash::oops;
    if (text.starts_with("INFO: task ") && contains(text, " blocked for more than "))
        return Crash::hang;
    if (contains(text, "soft lockup - CPU#")) return Crash::hang;
    // WARN_ON(): "WARNING: CPU: 3 PID: 7 at drivers/…"; lockdep's warnings name no place.
    if (text.starts_with("WARNING: ") && contains(text, " at ")) return Crash::warning;
    return std::nullopt;
}

// The module of a frame, "mlx5e_open+0x1a/0x40 [mlx5_core]", if it drives NICs or GPUs.
std::string_view driver_in(std::string_view text) {
    auto const close = text.rfind(']');
    auto const open = text.rfind('[', close);
    if (close == text.npos || open == text.npos || !contains(text, "+0x")) return {};
    auto const module = text.substr(open + 1, close - open - 1);
    auto const name = module.substr(0, module.find('('));
    auto const module_name = name.substr(0, name.find(' '));
    return contains(drivers, fmt::format(" {} ", module_name)) ? module_name : std::string_view();
}

// What a task does in functions of the kernel itself that take the locks of devices. [src
// drivers/pci/iov.c, drivers/base/{bus,core}.c, drivers/pci/pci-sysfs.c]
struct DeviceWork {
    std::string_view function, does;
};
constexpr auto device_work = std::to_array<DeviceWork>({
    {"sriov_numvfs_store+0x", "creates or removes VFs"},
    {"drivers_probe_store+0x", "binds a driver"},
    {"unbind_store+0x", "unbinds a driver"},
    {"bind_store+0x", "binds a driver"},
    {"remove_store+0x", "removes a PCI device"},
    {"reset_store+0x", "resets a PCI device"},
});

std::string_view work_in(std::string_view text) {
    auto const words = words_in(text);
    auto const frame = words.empty() ? std::string_view() : words.back();
    auto const found = std::ranges::find_if(
        device_work, [&](auto const& one) { return frame.starts_with(one.function); });
    return found == device_work.end() ? std::string_view() : found->does;
}

struct FoundCrash {
    Crash kind = Crash::oops;
    LogLine const* line = nullptr;
    LogLine const* frame = nullptr;  // null: nothing in the trace is known here
    std::string_view driver;         // empty: the frame is the kernel's own, or none is known
};

std::vector<FoundCrash> crashes_in(KernelLog const& log) {
    std::vector<FoundCrash> all;
    std::size_t left = 0;
    for (auto const& line : log.lines) {
        if (auto const kind = begins(line.text)) {
            // "Oops:" follows the line that says why.
            if (left > 0 && all.back().kind == Crash::oops && *kind == Crash::oops) continue;
            all.push_back({*kind, &line, nullptr, {}});
            left = trace_lines_max;
        }
        if (left == 0) continue;
        --left;
        if (contains(line.text, "---[ end trace")) left = 0;
        auto const driver = driver_in(line.text);
        if (driver.empty()) {
            if (all.back().kind == Crash::hang && !work_in(line.text).empty())
                all.back().frame = &line;
            continue;
        }
        all.back().frame = &line;
        all.back().driver = driver;
        left = 0;
    }
    return all;
}

Finding of_warning(FoundCrash const& crash, int times) {
    return warning(
        std::string(crash.driver),
        fmt::format("the kernel reached a state in {} that should be impossible (WARN){}",
                    crash.driver, counted({crash.line, times})),
        by_hand("look for a newer kernel or driver, and report the trace: journalctl -k"),
        {evidence_of(*crash.line), evidence_of(*crash.frame)});
}

Finding of_device_work(FoundCrash const& crash, int times) {
    return failed(
        "",
        fmt::format("a task hangs while it {}{}: what changes VFs or binds drivers hangs, "
                    "too",
                    work_in(crash.frame->text), counted({crash.line, times})),
        {{"reboot"},
         BlastRadius::reboot,
         "first end the processes that hold the VFs: fuser -v /dev/vfio/*; if that does "
         "not end it, only a reboot does"},
        {evidence_of(*crash.line), evidence_of(*crash.frame)});
}

Finding of_crash(FoundCrash const& crash, int times) {
    if (crash.kind == Crash::warning) return of_warning(crash, times);
    if (crash.driver.empty()) return of_device_work(crash, times);
    bool const oops = crash.kind == Crash::oops;
    auto const again = counted({crash.line, times});
    return failed(
        std::string(crash.driver),
        oops ? fmt::format(
                   "the kernel crashed in {}{}: what the driver held stays held until a reboot",
                   crash.driver, again)
             : fmt::format("a task hangs in {}{}: anything that needs the same lock hangs, too",
                           crash.driver, again),
        {{"reboot"},
         BlastRadius::reboot,
         fmt::format("don't unbind, bind or reload {} before that: it would hang; if it comes "
                     "back, boot another kernel, and report the trace",
                     crash.driver)},
        {evidence_of(*crash.line), evidence_of(*crash.frame)});
}

// A crash in the kernel's own code, or in a driver that is not known here: nobody can say what it
// means for NICs.
Finding of_other_crash(FoundCrash const& crash) {
    return not_known("",
                     fmt::format("{} without a frame of the {} drivers that are known here: {}",
                                 crash.kind == Crash::oops ? "the kernel crashed" : "a task hangs",
                                 words_in(drivers).size(), crash.line->text),
                     {evidence_of(*crash.line)});
}

}  // namespace

std::vector<Finding> judge_crashes(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    std::map<std::pair<std::string_view, Crash>, std::pair<FoundCrash, int>> by_driver;
    std::optional<FoundCrash> other;
    for (auto const& crash : crashes_in(*machine.log())) {
        if (!crash.frame) {
            if (!other && crash.kind != Crash::warning) other = crash;
            continue;
        }
        auto& [first, times] = by_driver[{crash.driver, crash.kind}];
        if (times++ == 0) first = crash;
    }
    std::vector<Finding> findings;
    for (auto const& [key, found] : by_driver)
        findings.push_back(of_crash(found.first, found.second));
    if (other) findings.push_back(of_other_crash(*other));
    return or_else(std::move(findings),
                   ok("", fmt::format("no crash or hang with a frame of {} drivers in {}",
                                      words_in(drivers).size(), lines_read(*machine.log()))));
}

}  // namespace vfmgr::checks
