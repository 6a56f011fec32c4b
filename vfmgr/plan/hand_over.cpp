// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

// mlx5 keeps the GUIDs of VFs that are gone and gives them to the VF made next in their place
// (kernel-and-libvirt.md, 4): only a VF that is there can be shown to be clean.
std::vector<std::string> residue_of_a_gone_vf(Attachment const& lease) {
    if (!lease.baseline.node_guid && !lease.baseline.port_guid) return {};
    return {fmt::format("VF {} is gone, and the one made next in its place gets its GUIDs",
                        to_string(lease.vf))};
}

std::vector<std::string> residue_of(Attachment const& lease, VfState const& vf) {
    auto left = differing(lease.baseline, vf.settings);
    // A network driver of the host's may choose an address for its VF; one that was lent may not
    // come back.
    if (vf.driver && !names_vfio_driver(*vf.driver) && vf.settings.mac != lease.settings.mac)
        left.mac.reset();
    std::vector<std::string> residue;
    if (!empty(left))
        residue.push_back("still to do: " +
                          sentence(ConfigureVfs{lease.vf.pf, {{lease.vf.index, left}}, {}}));
    for (auto const& holder : vf.holders)
        residue.push_back(fmt::format("VF {} is held open by {} (pid {})", to_string(lease.vf),
                                      holder.comm, holder.pid));
    return residue;
}

}  // namespace

HandOver hand_over(HostView const& after, Attachment const& lease) {
    auto const* const pf = find_pf(after, lease.vf.pf);
    if (!pf || pf->stale)
        return {{fmt::format("VF {} can't be looked at: {}", to_string(lease.vf),
                             pf ? pf->stale_reason : "its PF is gone")},
                {}};
    auto const* const vf = find_vf(after, lease.vf);
    if (!vf) return {residue_of_a_gone_vf(lease), {}};
    auto residue = residue_of(lease, *vf);
    if (!residue.empty()) return {std::move(residue), {}};
    return {{},
            Certificate{lease.vf, vf->pci, lease.id, lease.vm_name, vf->settings, vf->driver,
                        pf->observed_at}};
}

}  // namespace vfmgr
