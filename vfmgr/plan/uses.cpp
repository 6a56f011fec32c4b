// SPDX-License-Identifier: Apache-2.0
// In use means in use: our leases, libvirt's live and persistent XML of every domain, and processes
// that hold the VF's VFIO group (DESIGN.md, 6.1).
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

bool names(std::vector<VmHostdev> const& hostdevs, PciAddress const& pci) {
    return std::any_of(hostdevs.begin(), hostdevs.end(),
                       [&](VmHostdev const& hostdev) { return hostdev.pci == pci; });
}

void uses_of(std::vector<VfUse>& uses, HostView const& host, DesiredState const& desired,
             VfId const& id, VfState const& vf) {
    for (auto const& [attachment_id, attachment] : desired.attachments)
        if (attachment.vf == id)
            uses.push_back(
                {id, fmt::format("lent to {} (attachment {})", attachment.vm_name, attachment_id)});
    for (auto const& [uuid, vm] : host.hypervisor.vms) {
        if (names(vm.live, vf.pci))
            uses.push_back({id, fmt::format("in the running VM {}", vm.name)});
        if (names(vm.config, vf.pci))
            uses.push_back(
                {id, fmt::format("in the persistent configuration of VM {}", vm.name), uuid});
    }
    for (auto const& holder : vf.holders)
        uses.push_back({id, fmt::format("held open by {} (pid {})", holder.comm, holder.pid)});
    if (auto it = desired.quarantine.find(id); it != desired.quarantine.end())
        uses.push_back({id, fmt::format("in quarantine: {}", it->second.reason)});
}

}  // namespace

std::vector<VfUse> vf_uses(HostView const& host, DesiredState const& desired,
                           PciAddress const& pf) {
    std::vector<VfUse> uses;
    auto const* state = find_pf(host, pf);
    if (!state) return uses;
    for (auto const& vf : state->vfs) uses_of(uses, host, desired, VfId{pf, vf.index}, vf);
    return uses;
}

std::optional<BindVfs> bind_unused(HostView const& host, DesiredState const& desired,
                                   PfState const& pf, PfSpec const& want) {
    if (!want.vf_driver) return std::nullopt;
    auto const uses = vf_uses(host, desired, pf.info.pci);
    BindVfs bind{pf.info.pci, {}, want.vf_driver};
    for (auto const& vf : pf.vfs)
        if (vf.driver != want.vf_driver &&
            std::ranges::none_of(uses, [&](VfUse const& use) { return use.vf.index == vf.index; }))
            bind.vfs.push_back(vf.index);
    if (bind.vfs.empty()) return std::nullopt;
    return bind;
}

}  // namespace vfmgr
