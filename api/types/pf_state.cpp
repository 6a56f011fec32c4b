// SPDX-License-Identifier: Apache-2.0
#include "api/types/pf_state.hpp"

#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/json_text.hpp"

namespace vfmgr {

std::string to_string(InterfaceId const& interface) {
    if (!interface.vlan) return to_string(interface.pf);
    return fmt::format("{} vlan {}", to_string(interface.pf), *interface.vlan);
}

template <class F, Of<InterfaceId> V>
void fields(F& f, V& interface) {
    f.value("pf", interface.pf);
    f.maybe("vlan", interface.vlan);
}

void check(JsonReader& reader, InterfaceId const& interface) {
    if (interface.vlan && (*interface.vlan < 1 || *interface.vlan > 4094))
        reader.complain("vlan", "must be from 1 to 4094");
}

template <class F, Of<VfResetMethods> V>
void fields(F& f, V& vf) {
    f.value("index", vf.index);
    f.value("methods", vf.methods);
}

void append_json(std::string& text, VfResetMethods const& vf) {
    JsonText writer(text);
    fields(writer, vf);
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
    f.defaulted("guest_plane", vm.guest_plane);
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

// `vfs` holds a PF's VFs as observed, or those VFs with what the daemon knows of them.
template <class F, Of<PfState> V, class Vfs>
void fields_of_pf(F& f, V& pf, Vfs& vfs) {
    f.value("info", pf.info);
    f.value("vfs", vfs);
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

template <class F, Of<PfState> V>
void fields(F& f, V& pf) {
    fields_of_pf(f, pf, pf.vfs);
}

void check(JsonReader&, PfState& pf) {
    for (auto& interface : pf.interfaces) interface.id.pf = pf.info.pci;
}

template <class F, Of<PfStandingView> V>
void fields(F& f, V& standing) {
    f.value("is", standing.is);
    f.nullable("detail", standing.detail);
    f.nullable("remedy", standing.remedy);
}

template <class F, Of<PfView> V>
void fields(F& f, V& view) {
    fields_of_pf(f, view.pf, view.vfs);
    f.value("standing", view.standing);
    f.nullable("spec", view.spec);
    f.value("revision", view.revision);
    f.value("networks", view.networks);
    f.defaulted("drift", view.drift);
}

void check(JsonReader& reader, PfView& view) {
    check(reader, view.pf);
}

template <class F, Of<RekeyRequest> V>
void fields(F& f, V& request) {
    f.value("to", request.to);
}

template struct Json<InterfaceId>;
template struct Json<VfResetMethods>;
template struct Json<PfState>;
template struct Json<PfView>;
template struct Json<RekeyRequest>;

}  // namespace vfmgr
