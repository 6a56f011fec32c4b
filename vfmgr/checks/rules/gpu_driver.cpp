// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rdma_stack.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/gpu.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view nvidia_version = "/proc/driver/nvidia/version";

Evidence version_evidence(Machine const& machine) {
    auto const text = machine.facts.text(nvidia_version);
    if (!text)
        return {std::string(nvidia_version),
                text.error().absent() ? "does not exist" : "could not be read"};
    auto const line = text->substr(0, text->find('\n'));
    return {std::string(nvidia_version),
            std::string(line.substr(0, line.find_last_not_of(' ') + 1))};
}

LogLine const* last_of_nvrm(Machine const& machine) {
    LogLine const* last = nullptr;
    if (machine.log)
        for (auto const& line : machine.log->lines)
            if (line.text.starts_with("NVRM: ") && !line.text.starts_with("NVRM: loading"))
                last = &line;
    return last;
}

Finding without_nvidia(Machine const& machine, PciDevice const& gpu) {
    auto const address = to_string(gpu.address);
    if (gpu.driver)
        return warning(address,
                       fmt::format("{} is bound to {}, but GPUDirect needs NVIDIA's driver",
                                   address, *gpu.driver),
                       {{fmt::format("echo blacklist {} > /etc/modprobe.d/vfmgr-{}.conf",
                                     *gpu.driver, *gpu.driver),
                         is_debian(machine) ? "update-initramfs -u" : "dracut --force", "reboot"},
                        BlastRadius::reboot,
                        {},
                        {}},
                       {{fmt::format("/sys/bus/pci/devices/{}/driver", address), *gpu.driver}});
    auto const link = fmt::format("/sys/bus/pci/devices/{}/driver", address);
    if (auto const hidden = unseen(machine, link, address)) return *hidden;
    std::vector<Evidence> evidence{absence_evidence(link)};
    if (auto const* const line = last_of_nvrm(machine)) evidence.push_back(evidence_of(*line));
    if (!module_file(machine, "nvidia"))
        return warning(
            address,
            fmt::format("{} has no driver: NVIDIA's driver is not installed for kernel {}", address,
                        machine.release),
            by_hand("install NVIDIA's driver; if nvidia-peermem is needed, install DOCA-OFED "
                    "before it"),
            evidence);
    if (!module_loaded(machine, "nvidia"))
        return failed(address, fmt::format("{} has no driver: nvidia is not loaded", address),
                      by_command("modprobe nvidia"), evidence);
    return failed(address, fmt::format("{} has no driver, though nvidia is loaded", address),
                  by_hand("find the reason in the kernel's log: dmesg | grep NVRM"), evidence);
}

// On a host, a GPU without NVIDIA's driver may be meant for a VM, or for a console.
bool is_unused(Machine const& machine) {
    return machine.kind == CheckedMachine::host && !module_file(machine, "nvidia") &&
           !module_loaded(machine, "nvidia");
}

}  // namespace

std::vector<Finding> judge_gpu_driver(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    if (std::ranges::none_of(*machine.pci, is_nvidia_gpu))
        return {not_applicable("there is no NVIDIA GPU")};
    auto const gpus = own_gpus(machine);
    if (gpus.empty())
        return {
            not_applicable("every NVIDIA GPU is bound to vfio-pci: vf-guest doctor checks it in "
                           "the VM that it is attached to")};
    if (!machine.modules) return {unknown("", machine.modules.error())};
    if (is_unused(machine)) return {not_applicable("NVIDIA's driver is not installed here")};
    std::vector<Finding> findings;
    for (auto const* gpu : gpus)
        if (gpu->driver != "nvidia") findings.push_back(without_nvidia(machine, *gpu));
    if (!findings.empty()) return findings;
    auto const text = machine.facts.text(nvidia_version);
    if (!text) return {unknown("", text.error())};
    auto const driver = parse_nvidia_driver(*text);
    if (!driver) return {unknown("", {std::string(nvidia_version), EBADMSG})};
    return {ok("",
               fmt::format("NVIDIA's driver {} ({} kernel modules) has {} GPU{}; only CUDA shows "
                           "whether they offer GPUDirect",
                           driver->version, driver->open ? "open" : "proprietary", gpus.size(),
                           gpus.size() == 1 ? "" : "s"),
               {version_evidence(machine)})};
}

std::optional<Finding> no_gpudirect(Machine const& machine) {
    if (!machine.pci) return unknown("", machine.pci.error());
    auto const gpus = own_gpus(machine);
    bool const driven =
        std::ranges::any_of(gpus, [](auto const* gpu) { return gpu->driver == "nvidia"; });
    if (!driven) return not_applicable("there is no NVIDIA GPU that this machine uses itself");
    if (!has_rdma_nic(machine)) return not_applicable("there is no NIC with RDMA in hardware");
    return std::nullopt;
}

Finding perhaps_no_gpudirect(std::string detail, std::vector<Evidence> evidence) {
    detail += "; only CUDA shows whether this GPU offers GPUDirect at all (a GeForce does not)";
    return {{}, {}, CheckResult::unknown, std::move(detail), std::move(evidence), std::nullopt};
}

std::vector<Finding> judge_gpu_dma_buf(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    auto const dma_buf = judge_dma_buf(machine);
    std::vector<Evidence> evidence{version_evidence(machine)};
    if (dma_buf.can == Can::yes)
        return {ok("", "DMA-BUF can be used, and is the preferred way: " + dma_buf.why, evidence)};
    if (dma_buf.can == Can::unknown)
        return {{{},
                 {},
                 CheckResult::unknown,
                 "it is not known whether DMA-BUF can be used: " + dma_buf.why,
                 evidence,
                 std::nullopt}};
    if (module_loaded(machine, "nvidia_peermem"))
        return {
            ok("",
               fmt::format(
                   "DMA-BUF can't be used ({}); nvidia_peermem is loaded and takes its place{}",
                   dma_buf.why,
                   surely_offers_gpudirect(machine) ? ""
                                                    : ", if the GPU offers GPUDirect at all, which "
                                                      "only CUDA shows (a GeForce does not)"),
               evidence)};
    auto const detail = "GPU memory can't be registered by DMA-BUF: " + dma_buf.why;
    if (!surely_offers_gpudirect(machine)) return {perhaps_no_gpudirect(detail, evidence)};
    return {
        warning("", detail,
                by_hand("install kernel 5.12 or newer and NVIDIA's open kernel modules (a driver "
                        "package that ends in -open; Turing GPUs or newer), or use nvidia-peermem"),
                evidence)};
}

std::vector<Finding> judge_igpu(Machine const& machine) {
    constexpr auto path = "/sys/firmware/devicetree/base/compatible";
    auto const compatible = machine.facts.text(path);
    if (!compatible && !compatible.error().absent()) return {unknown("", compatible.error())};
    if (compatible.value_or("").find("nvidia,tegra") == std::string_view::npos)
        return {not_applicable("this machine has no integrated NVIDIA GPU")};
    if (!has_rdma_nic(machine)) return {not_applicable("there is no NIC with RDMA in hardware")};
    if (!own_gpus(machine).empty())
        return {not_applicable("there is a GPU card, which nvidia-peermem or DMA-BUF serves")};
    if (module_loaded(machine, "nvidia_p2p"))
        return {ok("", "nvidia_p2p is loaded", {{"/proc/modules", "nvidia_p2p"}})};
    auto const there = module_exists(machine, "nvidia_p2p");
    if (there && !*there)
        return {warning(
            "", "this software release has no nvidia-p2p, so the integrated GPU has no GPUDirect",
            by_hand("update to a release that has it: IGX SW 1.0 DP and JetPack 6.0 DP lack it, "
                    "their general releases do not"),
            {{"modules.dep", "no nvidia-p2p.ko"}})};
    return {
        warning("", "nvidia_p2p is not loaded, so the integrated GPU has no GPUDirect",
                {{"modprobe nvidia-p2p", "echo nvidia-p2p > /etc/modules-load.d/nvidia-p2p.conf"},
                 BlastRadius::none,
                 {},
                 {}},
                {{"/proc/modules", "no nvidia_p2p"}})};
}

}  // namespace vfmgr::checks
