// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/checks/nic.hpp"
#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rdma_stack.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/gpu.hpp"

namespace vfmgr::checks {
namespace {

Finding of_bar1(Machine const& machine, PciDevice const& gpu) {
    constexpr std::uint64_t mebibyte = 1U << 20U;
    constexpr std::uint64_t small_mebibytes = 256;
    auto const address = to_string(gpu.address);
    auto const path = fmt::format("/sys/bus/pci/devices/{}/resource", address);
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
    return is_nvidia_gpu(device) && (device.driver == "nvidia" || on_vfio(device));
}

Finding of_place(Machine const& machine, PciDevice const& gpu, PciDevice const& nic) {
    auto const address = to_string(gpu.address);
    auto const name = to_string(nic.address);
    switch (distance(machine, gpu, nic)) {
        case PciDistance::pix:
            return ok(address,
                      fmt::format("{} and NIC {} are below one PCI switch", address, name));
        case PciDistance::pxb:
            return ok(address, fmt::format("{} and NIC {} are below PCI switches of one root port",
                                           address, name));
        case PciDistance::phb:
            return ok(address, fmt::format("{} and NIC {} are below one host bridge, which NCCL "
                                           "crosses when NCCL_NET_GDR_LEVEL is PHB",
                                           address, name));
        case PciDistance::node:
            return ok(address,
                      fmt::format("{} and NIC {} are on NUMA node {}, below two host bridges, "
                                  "which NCCL crosses when NCCL_NET_GDR_LEVEL is PHB",
                                  address, name, *gpu.numa_node));
        case PciDistance::sys:
            return warning(
                address,
                fmt::format("{} is on NUMA node {}, but no RDMA NIC is: GPUDirect crosses the CPUs",
                            address, *gpu.numa_node),
                by_hand("move the NIC or the GPU to a slot of the other's CPU; best are two slots "
                        "below one PCI switch"),
                {{fmt::format("/sys/bus/pci/devices/{}/numa_node", name),
                  std::to_string(*nic.numa_node)}});
        case PciDistance::unknown:
            break;
    }
    return ok(address, fmt::format("no file shows that {} and NIC {} are on different NUMA nodes",
                                   address, name));
}

}  // namespace

std::vector<Finding> judge_bar1(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    std::vector<Finding> findings;
    for (auto const* gpu : own_gpus(machine))
        if (gpu->driver == "nvidia") findings.push_back(of_bar1(machine, *gpu));
    return findings;
}

std::vector<Finding> judge_gpu_topology(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    bool const guest = machine.kind == CheckedMachine::guest;
    auto const nics = rdma_nics(*machine.pci);
    bool const nic = guest ? has_rdma_nic(machine) : !nics.empty();
    if (!nic || std::ranges::none_of(*machine.pci, computes))
        return {not_applicable("this machine does not have both an NVIDIA GPU and an RDMA NIC")};
    if (guest)
        return {{{},
                 {},
                 CheckResult::unknown,
                 "a VM's PCI tree is virtual, so it does not show how near GPU and NIC are: the "
                 "host's gpu.topology does. NCCL assumes that they are far apart, and uses no "
                 "GPUDirect without NCCL_NET_GDR_LEVEL=SYS or an NCCL_TOPO_FILE. The path between "
                 "them is the host's, too: its ports' ACS stays on, and its NIC's ATS makes the "
                 "path short (the host's pci.acs)",
                 {},
                 std::nullopt}};
    std::vector<Finding> findings;
    for (auto const& device : *machine.pci)
        if (computes(device))
            findings.push_back(of_place(machine, device, *nearest_nic(machine, device)));
    return findings;
}

}  // namespace vfmgr::checks
