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
    // The VF with number n is usually element n.
    if (vf.index < pf->vfs.size() && pf->vfs[vf.index].index == vf.index) return &pf->vfs[vf.index];
    auto const found = std::ranges::find(pf->vfs, vf.index, &VfState::index);
    return found == pf->vfs.end() ? nullptr : &*found;
}

HostInterface const* find_interface(HostView const& view, InterfaceId const& interface) {
    auto const* pf = find_pf(view, interface.pf);
    if (pf == nullptr) return nullptr;
    auto const found = std::ranges::find(pf->interfaces, interface, &HostInterface::id);
    return found == pf->interfaces.end() ? nullptr : &*found;
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

template <class F, Of<HostInterface> V>
void fields(F& f, V& interface) {
    f.maybe("vlan", interface.id.vlan);
    f.value("ifname", interface.ifname);
    f.value("up", interface.up);
    f.value("mtu", interface.mtu);
    f.value("ours", interface.ours);
    f.value("prefixes", interface.prefixes);
    f.value("addresses", interface.addresses);
    f.value("filtered", interface.filtered);
    f.value("closed", interface.closed);
    f.value("peers", interface.peers);
}

template <class F, Of<PfState> V>
void fields(F& f, V& pf) {
    f.value("info", pf.info);
    f.value("vfs", pf.vfs);
    f.value("host_interfaces", pf.interfaces);
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

template <>
void Json<KernelView>::write(nlohmann::json& out, KernelView const& view) {
    JsonWriter writer(out);
    std::vector<PfState> pfs;
    for (auto const& [pci, pf] : view.pfs) pfs.push_back(pf);
    writer.value("pfs", pfs);
    writer.value("routes", view.routes);
    writer.maybe("network", view.network);
}

template <>
void Json<KernelView>::read(JsonReader& reader, KernelView& view) {
    std::vector<PfState> pfs;
    reader.value("pfs", pfs);
    reader.value("routes", view.routes);
    reader.maybe("network", view.network);
    for (auto& pf : pfs) view.pfs.insert_or_assign(pf.info.pci, std::move(pf));
}

void check(JsonReader&, PfState& pf) {
    for (auto& interface : pf.interfaces) interface.id.pf = pf.info.pci;
}

template struct Json<PeerEntry>;
template struct Json<ClosedVm>;
template struct Json<RdmaListener>;
template struct Json<HostInterface>;
template struct Json<PfState>;
template struct Json<HostRoute>;

}  // namespace vfmgr
