// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/gpu_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// A switch is two ports, the one above its bus and one below: as many as are on the way between
// two functions that are below one port.
std::size_t switches_between(PciDevice const& one, PciDevice const& other, std::size_t common) {
    auto const below_one = one.above.size() - common;
    auto const below_other = other.above.size() - common;
    // Of the switch that parts them, each way has the lower port only.
    bool const parted = below_one % 2 == 1 || below_other % 2 == 1;
    return below_one / 2 + below_other / 2 + (parted ? 1 : 0);
}

// The bus of the host bridge.
std::pair<std::uint32_t, std::uint8_t> root_bus(PciDevice const& device) {
    auto const& first = device.above.empty() ? device.address : device.above.front();
    return {first.domain, first.bus};
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

PciDistance distance(Machine const& machine, PciDevice const& one, PciDevice const& other) {
    auto const parted = std::ranges::mismatch(one.above, other.above);
    auto const common = static_cast<std::size_t>(parted.in1 - one.above.begin());
    if (common > 0)
        return switches_between(one, other, common) > 1 ? PciDistance::pxb : PciDistance::pix;
    if (root_bus(one) == root_bus(other)) return PciDistance::phb;
    auto const node = cpu_node(machine, one);
    auto const other_node = cpu_node(machine, other);
    if (!node || !other_node) return PciDistance::unknown;
    return node == other_node ? PciDistance::node : PciDistance::sys;
}

PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu) {
    if (!machine.pci) return nullptr;
    PciDevice const* nearest = nullptr;
    for (auto const* nic : rdma_nics(*machine.pci))
        if (!nearest || distance(machine, gpu, *nic) > distance(machine, gpu, *nearest))
            nearest = nic;
    return nearest;
}

}  // namespace vfmgr::checks
