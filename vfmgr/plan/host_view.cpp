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
    // As a rule a VF stands where its number says.
    if (vf.index < pf->vfs.size() && pf->vfs[vf.index].index == vf.index) return &pf->vfs[vf.index];
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

bool has_hostdev(std::vector<VmHostdev> const& hostdevs, std::string const& alias,
                 PciAddress const& pci) {
    return std::ranges::any_of(hostdevs, [&](VmHostdev const& hostdev) {
        return hostdev.alias == alias || hostdev.pci == pci;
    });
}

namespace {

template <class F, Of<PeerEntry> V>
void fields(F& f, V& peer) {
    f.value("address", peer.address);
    f.nullable("mac", peer.mac);
}

template <class F, Of<ClosedVm> V>
void fields(F& f, V& vm) {
    f.value("address", vm.address);
    f.value("mac", vm.mac);
    f.value("responder", vm.responder);
}

template <class F, Of<RdmaListener> V>
void fields(F& f, V& listener) {
    f.nullable("pid", listener.pid);
    f.value("comm", listener.comm);
    f.nullable("address", listener.address);
    f.value("port", listener.port);
}

template <class F, Of<LegState> V>
void fields(F& f, V& leg) {
    f.maybe("vlan", leg.id.vlan);
    f.value("ifname", leg.ifname);
    f.value("up", leg.up);
    f.value("mtu", leg.mtu);
    f.value("ours", leg.ours);
    f.value("prefixes", leg.prefixes);
    f.value("addresses", leg.addresses);
    f.value("filtered", leg.filtered);
    f.value("closed", leg.closed);
    f.value("peers", leg.peers);
}

template <class F, Of<PfState> V>
void fields(F& f, V& pf) {
    f.value("info", pf.info);
    f.value("vfs", pf.vfs);
    f.value("legs", pf.legs);
    f.value("listeners", pf.listeners);
    f.maybe("drivers_autoprobe", pf.drivers_autoprobe);
    f.defaulted("reset_methods", pf.reset_methods);
    f.value("stale", pf.stale);
    f.value("stale_reason", pf.stale_reason);
    f.nullable("stuck", pf.stuck);
    f.value("pci_busy", pf.pci_busy);
    f.value("observed_at", pf.observed_at);
}

template <class F, Of<HostRoute> V>
void fields(F& f, V& route) {
    f.value("prefix", route.prefix);
    f.value("ifname", route.ifname);
}

template <class T>
void write(nlohmann::json& out, T const& value) {
    JsonWriter writer(out);
    fields(writer, value);
}

}  // namespace

void to_json(nlohmann::json& out, PeerEntry const& peer) {
    write(out, peer);
}

void read(JsonReader& reader, PeerEntry& peer) {
    fields(reader, peer);
}

void to_json(nlohmann::json& out, ClosedVm const& vm) {
    write(out, vm);
}

void read(JsonReader& reader, ClosedVm& vm) {
    fields(reader, vm);
}

void to_json(nlohmann::json& out, RdmaListener const& listener) {
    write(out, listener);
}

void read(JsonReader& reader, RdmaListener& listener) {
    fields(reader, listener);
}

void to_json(nlohmann::json& out, LegState const& leg) {
    write(out, leg);
}

void read(JsonReader& reader, LegState& leg) {
    fields(reader, leg);
}

void to_json(nlohmann::json& out, PfState const& pf) {
    write(out, pf);
}

void read(JsonReader& reader, PfState& pf) {
    fields(reader, pf);
    for (auto& leg : pf.legs) leg.id.pf = pf.info.pci;
}

void to_json(nlohmann::json& out, HostRoute const& route) {
    write(out, route);
}

void read(JsonReader& reader, HostRoute& route) {
    fields(reader, route);
}

void to_json(nlohmann::json& out, KernelView const& view) {
    JsonWriter writer(out);
    std::vector<PfState> pfs;
    for (auto const& [pci, pf] : view.pfs) pfs.push_back(pf);
    writer.value("pfs", pfs);
    writer.value("routes", view.routes);
    writer.maybe("network", view.network);
}

void read(JsonReader& reader, KernelView& view) {
    std::vector<PfState> pfs;
    reader.value("pfs", pfs);
    reader.value("routes", view.routes);
    reader.maybe("network", view.network);
    for (auto& pf : pfs) view.pfs.insert_or_assign(pf.info.pci, std::move(pf));
}

}  // namespace vfmgr
