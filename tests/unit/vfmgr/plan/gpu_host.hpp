// SPDX-License-Identifier: Apache-2.0
// A host as a value: GPUs that VM vm1 has, and managed PFs, at given places of its PCI tree.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/vfmgr/plan/best_placement.hpp"
#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr::test {

struct GpuHost {
    HostView view;
    DesiredState desired;
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
};

inline PfState pf_at(PciAddress const& address, std::size_t number, std::size_t vfs) {
    auto pf = example::pf(static_cast<std::uint16_t>(vfs));
    auto const low = static_cast<std::uint8_t>(number);
    pf.info.pci = address;
    pf.info.ifname = fmt::format("nic{}", number);
    pf.info.mac = pf.info.identity.mac = MacAddress{{0x52, 0x54, 0, 0xbb, 0, low}};
    pf.info.total_vfs = static_cast<std::uint16_t>(vfs);
    pf.interfaces[0].id.pf = address;
    pf.interfaces[0].ifname = pf.info.ifname;
    for (auto& vf : pf.vfs) {
        vf.pci = {0xe000, low, static_cast<std::uint8_t>(vf.index / 8),
                  static_cast<std::uint8_t>(vf.index % 8)};
        vf.iommu_group = static_cast<std::uint32_t>(1000 * (number + 1) + vf.index);
    }
    return pf;
}

inline GpuHost gpu_host(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics) {
    GpuHost host{example::host(), {}, gpus, nics};
    host.view.kernel.pfs.clear();
    auto& places = host.view.kernel.places.emplace();
    auto& vm = host.view.hypervisor.vms.at(example::vm1_uuid);
    vm.free_pcie_ports = 32;
    for (auto const& gpu : gpus) {
        places.gpus.push_back(gpu);
        vm.live.push_back({gpu.address, std::nullopt});
        vm.config.push_back({gpu.address, std::nullopt});
    }
    for (auto const& nic : nics) {
        auto const& address = nic.place.address;
        places.pfs.push_back(nic.place);
        host.view.kernel.pfs[address] = pf_at(address, places.pfs.size(), nic.free_vfs);
        host.desired.pfs[address].spec.mode = PfMode::manage;
    }
    std::ranges::sort(places.gpus, {}, &PciPlace::address);
    std::ranges::sort(places.pfs, {}, &PciPlace::address);
    return host;
}

inline AttachmentSpec near_gpu() {
    AttachmentSpec spec;
    spec.vm = "vm1";
    spec.near = Near::gpu;
    return spec;
}

inline Result<AttachmentSetPlan> plan_near_gpus(GpuHost const& host,
                                                std::vector<AttachmentSpec> const& specs) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < specs.size(); ++i) ids.push_back(fmt::format("aaaa{:04}", i));
    return plan_attachments(host.view, host.desired, ids, specs, "seed");
}

// The set as place_gpus() would return it, for a VM whose VFs are these.
inline Placement placement_of(GpuHost const& host, std::vector<Attachment> const& attachments) {
    Placement placement(host.gpus.size());
    for (auto const& one : attachments) {
        auto const gpu = std::ranges::find(host.gpus, one.near.value().gpu, &PciPlace::address) -
                         host.gpus.begin();
        auto const at = [](NearNic const& nic) { return nic.place.address; };
        placement.at(static_cast<std::size_t>(gpu)) = static_cast<std::size_t>(
            std::ranges::find(host.nics, one.vf.pf, at) - host.nics.begin());
    }
    return placement;
}

}  // namespace vfmgr::test
