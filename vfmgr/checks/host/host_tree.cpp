// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/host_tree.hpp"

#include <algorithm>

#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/checks/host/topology_for_vm.hpp"
#include "vfmgr/plan/placement.hpp"

namespace vfmgr::checks {
namespace {

bool is_sriov_nic(PciDevice const& device) {
    return is_network(device) && !device.pf() && device.total_vfs().value_or(0) > 0;
}

HostDevice described(Machine const& host, PciDevice const& device, HostDeviceKind kind) {
    HostDevice one{kind, {}, device.vendor(), device.device(), place_of(host, device)};
    if (kind == HostDeviceKind::nic && !device.netdevs().empty())
        one.name = device.netdevs().front();
    return one;
}

}  // namespace

HostTree host_tree(Machine const& host) {
    HostTree tree;
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    for (auto const* const gpu : functions_of(host, is_nvidia_gpu)) {
        tree.devices.push_back(described(host, *gpu, HostDeviceKind::gpu));
        gpus.push_back(tree.devices.back().place);
    }
    for (auto const* const nic : functions_of(host, is_sriov_nic)) {
        tree.devices.push_back(described(host, *nic, HostDeviceKind::nic));
        nics.push_back({tree.devices.back().place, nic->total_vfs().value_or(0)});
    }
    auto const placed = place_gpus(gpus, nics);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        GpuPair pair{gpus[i].address, {}, {}};
        if (placed[i]) {
            auto const& nic = nics[*placed[i]].place;
            pair.pf = nic.address;
            pair.distance = distance(gpus[i], nic);
        }
        tree.pairs.push_back(pair);
    }
    std::ranges::sort(tree.devices, {}, [](HostDevice const& one) { return one.place.address; });
    tree.notes = blocked_paths(host);
    return tree;
}

}  // namespace vfmgr::checks
