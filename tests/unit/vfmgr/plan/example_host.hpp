// SPDX-License-Identifier: Apache-2.0
// A host as a value, for planner tests: one igb PF with 7 VFs and network "train", two VMs.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr::example {

inline PciAddress const pf_address{0, 1, 0, 0};
inline PciAddress const second_pf{0, 2, 0, 0};
inline char const* const vm1_uuid = "11111111-1111-1111-1111-111111111111";
inline char const* const vm2_uuid = "22222222-2222-2222-2222-222222222222";

inline MacAddress mac(std::uint8_t last) {
    return MacAddress{{0x02, 0, 0, 0, 0, last}};
}

inline IpAddress ip(char const* text) {
    return IpAddress::parse(text).value();
}
inline IpPrefix prefix(char const* text) {
    return IpPrefix::parse(text).value();
}

inline VfState vf(std::uint16_t index) {
    VfState state;
    state.index = index;
    state.pci = PciAddress{0, 1, 0x10, static_cast<std::uint8_t>(index)};
    state.iommu_group = 20 + index;
    state.settings.mac = MacAddress{};
    state.settings.vlan = Vlan{};
    state.settings.spoofchk = true;
    state.settings.trust = false;
    state.settings.max_tx_rate_mbps = 0;
    return state;
}

inline PfState pf(std::uint16_t num_vfs) {
    PfState state;
    state.info.pci = pf_address;
    state.info.ifname = "enp1s0";
    state.info.driver = "igb";
    state.info.mac = MacAddress{{0x52, 0x54, 0, 0xaa, 0, 1}};
    state.info.identity.mac = state.info.mac;
    state.info.total_vfs = 7;
    state.info.num_vfs = num_vfs;
    state.info.mtu = 1500;
    HostInterface interface;
    interface.id = InterfaceId{pf_address, {}};
    interface.ifname = "enp1s0";
    interface.mtu = 1500;
    state.interfaces.push_back(interface);
    state.drivers_autoprobe = true;
    for (std::uint16_t i = 0; i < num_vfs; ++i) {
        state.vfs.push_back(vf(i));
        state.reset_methods.push_back({i, "flr bus"});
    }
    return state;
}

inline VmInfo vm(char const* uuid, char const* name) {
    VmInfo info;
    info.uuid = uuid;
    info.name = name;
    info.state = VmState::running;
    info.persistent = true;
    info.start_id = 1;
    info.vsock_cid = 3;
    info.has_vsock = true;
    info.free_pcie_ports = 4;
    return info;
}

inline HostView host(std::uint16_t num_vfs = 7) {
    HostView view;
    view.kernel.pfs[pf_address] = pf(num_vfs);
    view.hypervisor.vms[vm1_uuid] = vm(vm1_uuid, "vm1");
    view.hypervisor.vms[vm2_uuid] = vm(vm2_uuid, "vm2");
    return view;
}

inline Network train() {
    Network network;
    network.name = "train";
    network.vlan = 100;
    network.prefix = prefix("192.168.100.0/24");
    network.pfs = {{pf_address, ip("192.168.100.3")}};
    network.mtu = 9000;
    network.rdma = RdmaMode::rxe;
    return network;
}

inline Network plain() {
    Network network;
    network.name = "plain";
    network.prefix = prefix("192.168.50.0/24");
    network.pfs = {{pf_address, ip("192.168.50.1")}};
    network.rdma = RdmaMode::rxe;
    return network;
}

inline DesiredState desired() {
    DesiredState state;
    state.pfs[pf_address].spec.num_vfs = 7;
    state.networks["train"] = {train()};
    state.networks["plain"] = {plain()};
    return state;
}

inline AttachmentSpec ask(char const* vm = "vm1") {
    AttachmentSpec spec;
    spec.vm = vm;
    spec.pf = pf_address;
    spec.network = "train";
    return spec;
}

inline Result<AttachmentPlan> plan(HostView const& view, DesiredState const& goal,
                                   AttachmentSpec const& spec) {
    return plan_attachment(view, goal, "aaaa0001", spec, "seed");
}

// Returns `desired` with one more attachment, as the planner made it.
inline DesiredState with_attachment(DesiredState state, HostView const& view, std::string const& id,
                                    AttachmentSpec const& spec) {
    auto planned = plan_attachment(view, state, id, spec, "seed").value();
    planned.attachment.state = AttachmentState::attached;
    state.pfs[planned.attachment.vf.pf].base = planned.base;
    state.attachments[id] = planned.attachment;
    return state;
}

template <class T>
std::vector<T> steps_of(Plan const& plan) {
    std::vector<T> found;
    for (auto const& step : plan.steps)
        if (auto const* one = as<T>(step)) found.push_back(*one);
    return found;
}

}  // namespace vfmgr::example
