// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/gpu_place.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

// NVIDIA's BAR1 is the largest region; its number differs: 1 on most, 2 where BAR0 is 64-bit.
PciRegion const* largest(std::vector<PciRegion> const& regions) {
    PciRegion const* found = nullptr;
    for (auto const& region : regions)
        if (region.is_memory() && region.is_prefetchable() &&
            (!found || region.bytes() > found->bytes()))
            found = &region;
    return found;
}

}  // namespace

std::optional<PciRegion> bar1_of(Machine const& machine, PciDevice const& gpu) {
    auto const text = machine.facts.text(file_of(gpu.address, "resource"));
    if (!text) return std::nullopt;
    auto const regions = parse_pci_resource(*text);
    auto const* const bar1 = largest(regions);
    return bar1 ? std::optional(*bar1) : std::nullopt;
}

std::vector<PciDevice const*> rdma_nics(Machine const& machine) {
    return functions_of(machine, [](PciDevice const& device) {
        return is_network(device) && !device.pf() &&
               (device.vendor() == vendor_mellanox || !device.rdma_devices().empty());
    });
}

PciDistance distance(Machine const& machine, PciDevice const& one, PciDevice const& other) {
    // Not both as arguments: compilers read those in different orders, and a verdict names the
    // first fact that was not collected.
    auto const place = place_of(machine, other);
    return vfmgr::distance(place_of(machine, one), place);
}

PciDevice const* nearest_nic(Machine const& machine, PciDevice const& gpu) {
    PciDevice const* nearest = nullptr;
    std::optional<PciDistance> its_distance;
    for (auto const* nic : rdma_nics(machine)) {
        auto const there = distance(machine, gpu, *nic);
        if (its_distance && !(there > *its_distance)) continue;
        nearest = nic;
        its_distance = there;
    }
    return nearest;
}

}  // namespace vfmgr::checks
