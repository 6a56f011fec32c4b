// SPDX-License-Identifier: Apache-2.0
// GPUDirect RDMA: NVIDIA's driver, the two ways from a GPU's memory to a NIC, and the place of
// both. Only CUDA's attributes show whether a GPU offers it, and no file does: a GeForce does not,
// a limit of the product and no fault of the machine (guest-tools/gpu/GPUDIRECT.md#geforce).
#include "vfmgr/checks/rules/gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

Finding of_bar1(Machine const& machine, PciDevice const& gpu) {
    constexpr std::uint64_t mebibyte = 1U << 20U;
    constexpr std::uint64_t small_mebibytes = 256;
    auto const address = to_string(gpu.address);
    auto const path = file_of(gpu.address, "resource");
    auto const text = machine.facts.text(path);
    if (!text) return unknown(address, text.error());
    auto const bar1 = bar1_of(machine, gpu);
    bool const guest = machine.kind == CheckedMachine::guest;
    if (!bar1 || !bar1->is_assigned())
        return failed(address, fmt::format("BAR1 of {} has no address", address),
                      by_hand(guest ? "give the VM UEFI firmware with a larger window for 64-bit "
                                      "BARs (OVMF: opt/ovmf/X-PciMmio64Mb), or a newer OVMF"
                                    : "enable Above 4G Decoding in the firmware's set-up, or boot "
                                      "with pci=realloc",
                              BlastRadius::reboot),
                      {evidence_of(machine, path)});
    auto const mebibytes = bar1->bytes() / mebibyte;
    std::vector<Evidence> evidence{{path, fmt::format("{:#x}-{:#x}", bar1->start, bar1->end)}};
    if (mebibytes <= small_mebibytes)
        return warning(
            address,
            fmt::format(
                "BAR1 of {} has {} MiB: no more of the GPU's memory can be registered at once",
                address, mebibytes),
            by_hand(guest ? "enable Resizable BAR in the host's firmware set-up, or set the size "
                            "on the host before the GPU is attached (resource1_resize)"
                          : "enable Resizable BAR and Above 4G Decoding in the firmware's set-up, "
                            "if the GPU supports it",
                    BlastRadius::reboot),
            evidence);
    return ok(address, fmt::format("BAR1 of {} has {} MiB", address, mebibytes), evidence);
}

// A GPU with neither driver is for a console.
bool computes(PciDevice const& device) {
    return is_nvidia_gpu(device) && (device.driver() == "nvidia" || on_vfio(device));
}

Finding of_place(Machine const& machine, PciDevice const& gpu, PciDevice const& nic) {
    auto const address = to_string(gpu.address);
    auto const both = fmt::format("{} and NIC {}", address, to_string(nic.address));
    switch (distance(machine, gpu, nic)) {
        case PciDistance::pix:
            return ok(address, both + " are below one PCI switch");
        case PciDistance::pxb:
            return ok(address, both + " are below PCI switches of one root port");
        case PciDistance::phb:
            return ok(address, both +
                                   " are below one host bridge, which NCCL crosses when "
                                   "NCCL_NET_GDR_LEVEL is PHB");
        case PciDistance::node:
            return ok(address,
                      fmt::format("{} are on NUMA node {}, below two host bridges, which NCCL "
                                  "crosses when NCCL_NET_GDR_LEVEL is PHB",
                                  both, *gpu.numa_node()));
        case PciDistance::sys:
            if (auto hidden = unread_so_far(machine, address)) return std::move(*hidden);
            return warning(
                address,
                fmt::format("{} is on NUMA node {}, but no RDMA NIC is: GPUDirect crosses the CPUs",
                            address, *gpu.numa_node()),
                by_hand("move the NIC or the GPU to a slot of the same CPU; ideally use two slots "
                        "below one PCI switch"),
                {{file_of(nic.address, "numa_node"), std::to_string(*nic.numa_node())}});
        case PciDistance::unknown:
            break;
    }
    return ok(address, fmt::format("no file shows that {} are on different NUMA nodes", both));
}

std::vector<Finding> judge_bar1(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    std::vector<Finding> findings;
    for (auto const* gpu : own_gpus(machine))
        if (gpu->driver() == "nvidia") findings.push_back(of_bar1(machine, *gpu));
    return findings;
}

std::vector<Finding> judge_gpu_topology(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    bool const guest = machine.kind == CheckedMachine::guest;
    bool const nic = guest ? has_rdma_nic(machine) : !rdma_nics(machine).empty();
    if (!nic || std::ranges::none_of(*machine.pci(), computes))
        return {not_applicable("this machine does not have both an NVIDIA GPU and an RDMA NIC")};
    if (guest)
        return {not_known(
            "",
            "a VM's PCI tree is virtual, so it does not show how near GPU and NIC are: the "
            "host's gpu.topology does. NCCL assumes that they are far apart, and uses no "
            "GPUDirect without NCCL_NET_GDR_LEVEL=SYS or an NCCL_TOPO_FILE. The path between "
            "them is the host's, too: its ports' ACS stays on, and its NIC's ATS makes the "
            "path short (the host's pci.acs)")};
    std::vector<Finding> findings;
    for (auto const& device : *machine.pci())
        if (computes(device))
            findings.push_back(of_place(machine, device, *nearest_nic(machine, device)));
    return findings;
}

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
    return last_line(machine, [](LogLine const& line) {
        return line.text.starts_with("NVRM: ") && !line.text.starts_with("NVRM: loading");
    });
}

Finding without_nvidia(Machine const& machine, PciDevice const& gpu) {
    auto const address = to_string(gpu.address);
    auto const link = file_of(gpu.address, "driver");
    if (gpu.driver())
        return warning(address,
                       fmt::format("{} is bound to {}, but GPUDirect needs NVIDIA's driver",
                                   address, *gpu.driver()),
                       {{fmt::format("echo blacklist {} > /etc/modprobe.d/vfmgr-{}.conf",
                                     *gpu.driver(), *gpu.driver()),
                         is_debian(machine) ? "update-initramfs -u" : "dracut --force", "reboot"},
                        BlastRadius::reboot},
                       {{link, *gpu.driver()}});
    if (auto const hidden = unseen(machine, link, address)) return *hidden;
    std::vector<Evidence> evidence{absence_evidence(link)};
    if (auto const* const line = last_of_nvrm(machine)) evidence.push_back(evidence_of(*line));
    if (!module_file(machine, "nvidia"))
        return warning(
            address,
            fmt::format("{} has no driver: NVIDIA's driver is not installed for kernel {}", address,
                        machine.release()),
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
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    if (std::ranges::none_of(*machine.pci(), is_nvidia_gpu))
        return {not_applicable("there is no NVIDIA GPU")};
    auto const gpus = own_gpus(machine);
    if (gpus.empty())
        return {
            not_applicable("every NVIDIA GPU is bound to vfio-pci: vf-guest doctor checks it in "
                           "the VM that it is attached to")};
    if (!machine.modules()) return {unknown("", machine.modules().error())};
    if (is_unused(machine)) return {not_applicable("NVIDIA's driver is not installed here")};
    std::vector<Finding> findings;
    for (auto const* gpu : gpus)
        if (gpu->driver() != "nvidia") findings.push_back(without_nvidia(machine, *gpu));
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
    if (!machine.pci()) return unknown("", machine.pci().error());
    auto const gpus = own_gpus(machine);
    bool const driven =
        std::ranges::any_of(gpus, [](auto const* gpu) { return gpu->driver() == "nvidia"; });
    if (!driven) return not_applicable("there is no NVIDIA GPU that this machine uses itself");
    if (!has_rdma_nic(machine)) return not_applicable("there is no NIC with RDMA in hardware");
    return std::nullopt;
}

Finding perhaps_no_gpudirect(std::string detail, std::vector<Evidence> evidence) {
    detail += "; only CUDA shows whether this GPU offers GPUDirect at all (a GeForce does not)";
    return not_known("", std::move(detail), std::move(evidence));
}

namespace {

std::vector<Finding> judge_gpu_dma_buf(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    auto const dma_buf = judge_dma_buf(machine);
    std::vector<Evidence> evidence{version_evidence(machine)};
    if (dma_buf.can == Can::yes)
        return {ok("", "DMA-BUF can be used, and is the preferred way: " + dma_buf.why, evidence)};
    if (dma_buf.can == Can::unknown)
        return {
            not_known("", "it is not known whether DMA-BUF can be used: " + dma_buf.why, evidence)};
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

}  // namespace

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
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    if (there && !*there)
        return {warning(
            "", "this software release has no nvidia-p2p, so the integrated GPU has no GPUDirect",
            by_hand("update to a release that has it: IGX SW 1.0 DP and JetPack 6.0 DP lack it, "
                    "their general releases do not"),
            {{"modules.dep", "no nvidia-p2p.ko"}})};
    return {
        warning("", "nvidia_p2p is not loaded, so the integrated GPU has no GPUDirect",
                {{"modprobe nvidia-p2p", "echo nvidia-p2p > /etc/modules-load.d/nvidia-p2p.conf"},
                 BlastRadius::none},
                {{"/proc/modules", "no nvidia_p2p"}})};
}

namespace {

constexpr std::array gpu{
    Rule{"gpu.driver", "The GPUs are bound to NVIDIA's driver",
         "NVIDIA driver README, /proc/driver/nvidia; recordings of driver logs", judge_gpu_driver},
    Rule{"gpu.install_order", "nvidia-peermem was built against the OFED of this machine",
         "open-gpu-kernel-modules nvidia-peermem.c and conftest.sh; setup guide, Installation "
         "Order; Holoscan guide; a recording of a symbol's other version",
         judge_install_order},
    Rule{"gpu.peermem", "nvidia-peermem is loaded where it is needed",
         "open-gpu-kernel-modules nvidia-peermem.c; gpu-operator issue 2868; setup guide, "
         "nvidia-peermem Won't Load",
         judge_peermem},
    Rule{"gpu.dmabuf", "GPU memory can be registered by DMA-BUF",
         "CUDA driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; perftest README; Linux 5.12 "
         "ib_umem_dmabuf",
         judge_gpu_dma_buf},
    Rule{"gpu.nv_peer_mem", "No old nv_peer_mem is left",
         "NVIDIA GPUDirect RDMA, nvidia-peermem; setup guide, Install nvidia-peermem",
         judge_nv_peer_mem},
    Rule{"gpu.peermem_at_boot", "nvidia-peermem is also loaded at boot",
         "modules-load.d(5); setup guide and Holoscan guide", judge_peermem_at_boot},
    Rule{"gpu.bar1", "The GPU's BAR1 is large enough",
         "NVIDIA GPUDirect RDMA, BAR sizes; Linux pci-sysfs, resource; nvidia-smi -q recordings",
         judge_bar1},
    Rule{"gpu.topology", "Each GPU has a NIC near it",
         "NCCL topology; rdma-core rdma_topo; nvidia-smi topo recordings", judge_gpu_topology,
         AppliesTo::both, RestsOn::all_devices},
    Rule{"gpu.igpu", "An integrated GPU has nvidia-p2p", "Holoscan guide, Enabling GPUDirect RDMA",
         judge_igpu},
};

}  // namespace

constinit std::span<Rule const> const gpu_rules = gpu;

}  // namespace vfmgr::checks
