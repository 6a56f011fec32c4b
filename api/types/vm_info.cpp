// SPDX-License-Identifier: Apache-2.0
#include "api/types/vm_info.hpp"

#include <algorithm>

#include "api/types/attachment.hpp"
#include "api/types/json.hpp"

namespace vfmgr {

VmHostdev const* find_hostdev(std::vector<VmHostdev> const& hostdevs, PciAddress const& pci) {
    auto const found = std::ranges::find(hostdevs, pci, &VmHostdev::pci);
    return found == hostdevs.end() ? nullptr : &*found;
}

bool is_ours(VmHostdev const& hostdev) {
    return hostdev.alias && hostdev.alias->starts_with(hostdev_alias({}));
}

template <class F, Of<VmHostdev> V>
void fields(F& f, V& hostdev) {
    f.value("pci", hostdev.pci);
    f.nullable("alias", hostdev.alias);
    f.nullable("in_guest", hostdev.in_guest);
    f.defaulted("managed", hostdev.managed);
}

template <class F, Of<VmInterface> V>
void fields(F& f, V& interface) {
    f.value("mac", interface.mac);
    f.value("type", interface.type);
    f.nullable("pci", interface.pci);
    f.value("standby", interface.standby);
}

template <class F, Of<DeclaredVfs> V>
void fields(F& f, V& vfs) {
    f.value("pool", vfs.pool);
    f.value("count", vfs.count);
    f.nullable("verify_profile", vfs.verify_profile);
}

template <class F, Of<PlacedHostdev> V>
void fields(F& f, V& hostdev) {
    f.value("pci", hostdev.pci);
    f.maybe("cell", hostdev.cell);
    f.value("switches", hostdev.switches);
}

template <class F, Of<GuestPcie> V>
void fields(F& f, V& pcie) {
    f.value("next_bus", pcie.next_bus);
    f.value("free_slots", pcie.free_slots);
    f.value("cell_nodes", pcie.cell_nodes);
    f.value("placed", pcie.placed);
}

template <class F, Of<VmInfo> V>
void fields(F& f, V& vm) {
    f.value("uuid", vm.uuid);
    f.value("name", vm.name);
    f.value("state", vm.state);
    f.value("persistent", vm.persistent);
    f.value("autostart", vm.autostart);
    f.nullable("start_id", vm.start_id);
    f.nullable("vsock_cid", vm.vsock_cid);
    f.value("has_vsock", vm.has_vsock);
    f.value("free_pcie_ports", vm.free_pcie_ports);
    f.defaulted("free_live", vm.free_live);
    f.defaulted("free_config", vm.free_config);
    f.value("live", vm.live);
    f.value("config", vm.config);
    f.value("interfaces", vm.interfaces);
    f.value("hostdev_networks", vm.hostdev_networks);
    f.defaulted("declared", vm.declared);
    f.nullable("declared_wrong", vm.declared_wrong);
    f.maybe("pcie", vm.pcie);
}

template <class F, Of<VmIdentity> V>
void fields(F& f, V& vm) {
    f.value("uuid", vm.uuid);
    f.value("name", vm.name);
    f.value("start_id", vm.start_id);
}

template struct Json<VmInterface>;
template struct Json<DeclaredVfs>;
template struct Json<PlacedHostdev>;
template struct Json<GuestPcie>;
template struct Json<VmInfo>;
template struct Json<VmIdentity>;

}  // namespace vfmgr
