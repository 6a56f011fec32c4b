// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/host_view.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

PfState const* find_pf(HostView const& view, PciAddress const& pf) {
    auto const found = view.kernel.pfs.find(pf);
    return found == view.kernel.pfs.end() ? nullptr : &found->second;
}

VfState const* find_vf(HostView const& view, VfId const& vf) {
    auto const* pf = find_pf(view, vf.pf);
    if (pf == nullptr) return nullptr;
    auto const found = std::ranges::find(pf->vfs, vf.index, &VfState::index);
    return found == pf->vfs.end() ? nullptr : &*found;
}

LegState const* find_leg(HostView const& view, LegId const& leg) {
    auto const* pf = find_pf(view, leg.pf);
    if (pf == nullptr) return nullptr;
    auto const found = std::ranges::find(pf->legs, leg, &LegState::id);
    return found == pf->legs.end() ? nullptr : &*found;
}

VmInfo const* find_vm(HostView const& view, std::string_view name_or_uuid) {
    auto const& vms = view.hypervisor.vms;
    if (auto const by_uuid = vms.find(std::string(name_or_uuid)); by_uuid != vms.end())
        return &by_uuid->second;
    for (auto const& [uuid, vm] : vms)
        if (vm.name == name_or_uuid) return &vm;
    return nullptr;
}

void to_json(nlohmann::json& out, PeerEntry const& peer) {
    JsonWriter writer(out);
    writer.value("address", peer.address);
    writer.nullable("mac", peer.mac);
}

void to_json(nlohmann::json& out, LegState const& leg) {
    JsonWriter writer(out);
    writer.maybe("vlan", leg.id.vlan);
    writer.value("ifname", leg.ifname);
    writer.value("up", leg.up);
    writer.value("mtu", leg.mtu);
    writer.value("ours", leg.ours);
    writer.value("prefixes", leg.prefixes);
    writer.value("addresses", leg.addresses);
    writer.value("peers", leg.peers);
}

void to_json(nlohmann::json& out, PfState const& pf) {
    JsonWriter writer(out);
    writer.value("info", pf.info);
    writer.value("vfs", pf.vfs);
    writer.value("legs", pf.legs);
    writer.value("stale", pf.stale);
    writer.value("stale_reason", pf.stale_reason);
    writer.value("observed_at", pf.observed_at);
}

void to_json(nlohmann::json& out, HostRoute const& route) {
    JsonWriter writer(out);
    writer.value("prefix", route.prefix);
    writer.value("ifname", route.ifname);
}

}  // namespace vfmgr
