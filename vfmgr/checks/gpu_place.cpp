// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/gpu_place.hpp"

#include <fmt/format.h>

namespace vfmgr::checks {
namespace {

// NVIDIA's BAR1 is the largest region; its number differs: 1 on most, 2 where BAR0 has 64 bits.
PciRegion const* largest(std::vector<PciRegion> const& regions) {
    PciRegion const* found = nullptr;
    for (auto const& region : regions)
        if (region.is_memory() && region.is_prefetchable() &&
            (!found || region.bytes() > found->bytes()))
            found = &region;
    return found;
}

bool share_a_switch(PciDevice const& one, PciDevice const& other) {
    return !one.above.empty() && !other.above.empty() && one.above.front() == other.above.front();
}

// A node without CPUs is memory, of a GPU perhaps (recorded on POWER9): it is near nothing.
std::optional<int> cpu_node(Machine const& machine, PciDevice const& device) {
    auto const with_cpus = machine.facts.text("/sys/devices/system/node/has_cpu");
    if (device.numa_node && with_cpus && !number_list_has(*with_cpus, *device.numa_node))
        return std::nullopt;
    return device.numa_node;
}

}  // namespace

std::optional<PciRegion> bar1_of(Machine const& machine, PciDevice const& gpu) {
    auto const text =
        machine.facts.text(fmt::format("/sys/bus/pci/devices/{}/resource", to_string(gpu.address)));
    if (!text) return std::nullopt;
    auto const regions = parse_pci_resource(*text);
    auto const* const bar1 = largest(regions);
    return bar1 ? std::optional(*bar1) : std::nullopt;
}

std::vector<PciDevice const*> rdma_nics(std::vector<PciDevice> const& pci) {
    std::vector<PciDevice const*> nics;
    for (auto const& device : pci)
        if (is_network(device) && !device.pf &&
            (device.vendor == vendor_mellanox || !device.rdma_devices.empty()))
            nics.push_back(&device);
    return nics;
}

Nearness nearness(Machine const& machine, PciDevice const& gpu, PciDevice const& nic) {
    if (share_a_switch(gpu, nic)) return Nearness::same_switch;
    auto const of_gpu = cpu_node(machine, gpu);
    auto const of_nic = cpu_node(machine, nic);
    if (!of_gpu || !of_nic) return Nearness::unknown;
    return of_gpu == of_nic ? Nearness::same_node : Nearness::other_node;
}

PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu) {
    if (!machine.pci) return nullptr;
    PciDevice const* nearest = nullptr;
    for (auto const* nic : rdma_nics(*machine.pci))
        if (!nearest || nearness(machine, gpu, *nic) > nearness(machine, gpu, *nearest))
            nearest = nic;
    return nearest;
}

}  // namespace vfmgr::checks
