// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "vfmgr/kernel/quirks.hpp"

namespace vfmgr {
namespace {

template <class T>
bool contains(std::vector<T> const& all, T const& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

bool has_peer(HostInterface const& interface, IpAddress const& address, DesiredPeer const& peer) {
    return std::any_of(interface.peers.begin(), interface.peers.end(), [&](PeerEntry const& entry) {
        return entry.address == address && entry.mac == peer.mac;
    });
}

// The host may serve other clients at this address.
bool there_before_vfmgr(HostInterface const& interface, PfBase const& base,
                        IpAddress const& address) {
    return !interface.ours && contains(base.addresses, address);
}

// Another program flushed the host's packet filter.
bool lost_its_filter(HostInterface const& interface, PfBase const& base, IpAddress const& address) {
    return !contains(interface.filtered, address) && !there_before_vfmgr(interface, base, address);
}

bool is_open_to(HostInterface const& interface, IpAddress const& address, DesiredPeer const& peer) {
    return !contains(interface.closed, ClosedVm{address, peer.mac, peer.source, peer.guest_plane});
}

// A tagged interface that does not exist yet starts empty.
void interface_up(std::vector<Step>& steps, HostInterface const* interface, InterfaceId const& id,
                  DesiredInterface const& needed, PfBase const& base, bool up, std::uint32_t mtu) {
    if (!interface && id.vlan) steps.push_back(AddVlanInterface{id});
    // Never lowers an MTU here: another program may have made the VLAN device.
    if (!interface || interface->up != up || interface->mtu < mtu)
        if (up || interface) steps.push_back(SetLink{id, up, mtu});
    for (auto const& address : needed.addresses)
        if (!interface || !contains(interface->addresses, address) ||
            lost_its_filter(*interface, base, address))
            steps.push_back(AddAddress{id, address});
    for (auto const& [address, peer] : needed.peers)
        if (!interface || !has_peer(*interface, address, peer) ||
            is_open_to(*interface, address, peer))
            steps.push_back(AddPeer{id, address, peer.mac, peer.source, peer.guest_plane});
}

bool has_rate(VfSpec const& settings) {
    return settings.min_tx_rate_mbps.value_or(0) != 0 || settings.max_tx_rate_mbps.value_or(0) != 0;
}

bool is_host_address(Networks const& networks, PciAddress const& pf, IpAddress const& address) {
    return std::ranges::any_of(networks, [&](auto const& each) {
        auto const* const host = host_address_on(each.second.network, pf);
        return host && *host == address;
    });
}

// True when vfmgr may remove the address: it is a host address of one of the PF's networks, and did
// not exist before vfmgr first used the PF.
bool ours(HostInterface const& interface, Networks const& networks, PfBase const& base,
          IpAddress const& address) {
    return is_host_address(networks, interface.id.pf, address) &&
           !there_before_vfmgr(interface, base, address);
}

bool in_a_network(Networks const& networks, InterfaceId const& interface,
                  IpAddress const& address) {
    return std::ranges::any_of(networks, [&](auto const& each) {
        auto const& network = each.second.network;
        return host_address_on(network, interface.pf) && network.vlan == interface.vlan &&
               network.prefix.contains(address);
    });
}

// Addresses of VMs that the interface has a route or a filter for. A PF that goes down loses the
// route, and keeps the filter.
std::set<IpAddress> vms_on(HostInterface const& interface, Networks const& networks) {
    std::set<IpAddress> addresses;
    for (auto const& peer : interface.peers)
        if (interface.ours || in_a_network(networks, interface.id, peer.address))
            addresses.insert(peer.address);
    for (auto const& vm : interface.closed) addresses.insert(vm.address);
    return addresses;
}

void interface_down(std::vector<Step>& steps, HostInterface const& interface,
                    DesiredInterface const* needed, Networks const& networks, PfBase const& base) {
    for (auto const& address : vms_on(interface, networks))
        if (!needed || !needed->peers.contains(address))
            steps.push_back(RemovePeer{interface.id, address});
    for (auto const& address : interface.addresses) {
        bool const stays = needed && contains(needed->addresses, address);
        if (!stays && ours(interface, networks, base, address))
            steps.push_back(RemoveAddress{interface.id, address});
    }
    if (!interface.id.vlan || !interface.ours) return;
    if (!needed)
        steps.push_back(RemoveVlanInterface{interface.id});
    else if (interface.mtu != needed->mtu)  // networks with different MTUs share a VLAN
        steps.push_back(SetLink{interface.id, true, needed->mtu});
}

}  // namespace

PfBase base_of(PfState const& pf) {
    PfBase base{pf.info.up, pf.info.mtu, pf.info.rdma_device.has_value(), {}};
    for (auto const& interface : pf.interfaces)
        if (!interface.ours)
            base.addresses.insert(base.addresses.end(), interface.addresses.begin(),
                                  interface.addresses.end());
    return base;
}

std::vector<Attachment> attachments_on(DesiredState const& desired, PciAddress const& pf,
                                       std::string_view except) {
    std::vector<Attachment> attachments;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf && id != except) attachments.push_back(attachment);
    return attachments;
}

std::vector<Attachment> attached_on(DesiredState const& desired, PciAddress const& pf) {
    auto attachments = attachments_on(desired, pf, "");
    std::erase_if(attachments, [](Attachment const& attachment) {
        return attachment.state != AttachmentState::attached;
    });
    std::ranges::sort(attachments, {},
                      [](Attachment const& attachment) { return attachment.vf.index; });
    return attachments;
}

DesiredLinks desired_links(PciAddress const& address, Networks const& networks, PfBase const& base,
                           std::vector<Attachment> const& attachments) {
    // An attached VF needs its PF up even without a network: otherwise it has no link, and drivers
    // refuse its rates (vfmgr/kernel/KERNEL.md#pfs-that-are-down).
    DesiredLinks needed{base.up || !attachments.empty(), base.mtu, false, {}};
    InterfaceId const untagged{address, {}};
    needed.interfaces[untagged];
    for (auto const& attachment : attachments) {
        auto const carried = network_of(networks, attachment);
        if (!carried) continue;
        auto const& [network, host_address] = *carried;
        needed.mtu = std::max(needed.mtu, network->mtu);
        needed.rxe = needed.rxe || network->rdma == RdmaMode::rxe;
        auto& interface = needed.interfaces[InterfaceId{address, network->vlan}];
        interface.mtu = std::max(interface.mtu, network->mtu);
        if (!contains(interface.addresses, host_address))
            interface.addresses.push_back(host_address);
        if (attachment.address && attachment.settings.mac)
            interface.peers[*attachment.address] = {*attachment.settings.mac, host_address,
                                                    is_on_tcp(attachment.spec)};
    }
    needed.interfaces[untagged].mtu = needed.mtu;
    return needed;
}

Result<void> require_own_interface(PfInfo const& pf, Network const& network) {
    if (!pf.controller) return {};
    return fail(
        Problem::conflict,
        fmt::format("{} is part of {}: the host can't have an address of network {} on it",
                    display_name(pf), *pf.controller, network.name),
        fmt::format("take it out (ip link set {} nomaster), or attach VFs without a network",
                    display_name(pf)));
}

std::vector<RdmaListener> reached_listeners(PfState const& pf, Networks const& networks,
                                            Network const& network) {
    auto const* const interface = find_interface(pf, InterfaceId{pf.info.pci, network.vlan});
    std::vector<RdmaListener> reached;
    // A guest that gives RDMA CM a false destination address reaches all of an interface's
    // addresses.
    for (auto const& each : pf.listeners)
        if (!each.address || (interface && contains(interface->addresses, *each.address) &&
                              !is_host_address(networks, pf.info.pci, *each.address)))
            reached.push_back(each);
    return reached;
}

std::string sentence(RdmaListener const& listener, PfInfo const& pf) {
    auto const who = listener.pid ? fmt::format("{} (pid {})", listener.comm, *listener.pid)
                                  : fmt::format("{} in the kernel", listener.comm);
    return fmt::format("{} listens with RDMA CM on {} of {}, port {}", who,
                       listener.address ? to_string(*listener.address) : "every address",
                       pf.rdma_device.value_or(display_name(pf)), listener.port);
}

std::vector<Step> links_up(PfState const& pf, DesiredLinks const& needed, PfBase const& base) {
    std::vector<Step> steps;
    InterfaceId const untagged{pf.info.pci, {}};
    // The PF's MTU bounds that of its VLAN devices and VFs: it is lowered only in links_down.
    auto const mtu = std::max(needed.mtu, pf.info.mtu);
    interface_up(steps, find_interface(pf, untagged), untagged, needed.interfaces.at(untagged),
                 base, needed.up || pf.info.up, mtu);
    // SoftRoCE goes on the parent: a VLAN device refuses it, and its GID appears on the parent's.
    if (needed.rxe && !pf.info.rdma_device) steps.push_back(AddRdmaLink{pf.info.pci});
    for (auto const& [id, interface] : needed.interfaces)
        if (id.vlan)
            interface_up(steps, find_interface(pf, id), id, interface, base, true, interface.mtu);
    return steps;
}

void raise_for_vfs(std::vector<Step>& steps, PfState const& pf) {
    constexpr bool needs_it =
        (quirks::affected_by(quirks::Effect::needs_pf_up) & quirks::num_vfs) != 0;
    if (!needs_it || pf.info.up) return;
    steps.push_back(SetLink{InterfaceId{pf.info.pci, {}}, true, pf.info.mtu});
}

void await_carrier(std::vector<Step>& steps) {
    std::vector<InterfaceId> raised;
    for (auto const& step : steps)
        if (auto const* const link = as<SetLink>(step); link && link->up && !link->interface.vlan)
            raised.push_back(link->interface);
    for (auto const& interface : raised) {
        auto const gives_rates = [&](Step const& step) {
            auto const* const configure = as<ConfigureVfs>(step);
            return configure && configure->pf == interface.pf &&
                   std::ranges::any_of(configure->changes, has_rate, &VfChange::settings);
        };
        auto const rates = std::ranges::find_if(steps, gives_rates);
        if (rates != steps.end()) {
            steps.insert(rates, AwaitCarrier{interface});
            continue;
        }
        auto const plugged = std::find_if(steps.rbegin(), steps.rend(), [](Step const& step) {
            return as<AttachHostdev>(step) || as<AttachExternal>(step) || as<MarkHostdev>(step);
        });
        if (plugged != steps.rend()) steps.insert(plugged.base(), AwaitCarrier{interface});
    }
}

std::vector<Step> links_closed(PfState const& pf, DesiredLinks const& needed, PfBase const& base) {
    std::vector<Step> steps;
    for (auto const& [id, closed] : needed.interfaces) {
        auto const* const interface = find_interface(pf, id);
        if (!interface || !interface->up) continue;
        for (auto const& address : closed.addresses)
            if (contains(interface->addresses, address) &&
                lost_its_filter(*interface, base, address))
                steps.push_back(AddAddress{id, address});
        for (auto const& [address, peer] : closed.peers)
            if (is_open_to(*interface, address, peer) &&
                contains(interface->addresses, peer.source))
                steps.push_back(AddPeer{id, address, peer.mac, peer.source, peer.guest_plane});
    }
    return steps;
}

std::vector<Step> links_down(PfState const& pf, DesiredLinks const& needed,
                             Networks const& networks, PfBase const& base) {
    std::vector<Step> steps;
    for (auto interface = pf.interfaces.rbegin(); interface != pf.interfaces.rend(); ++interface) {
        auto const kept = needed.interfaces.find(interface->id);
        interface_down(steps, *interface, kept == needed.interfaces.end() ? nullptr : &kept->second,
                       networks, base);
    }
    if (pf.info.rdma_driver == "rxe" && !needed.rxe && !base.rdma)
        steps.push_back(RemoveRdmaLink{pf.info.pci});
    // A PF that became part of a bond or bridge meanwhile is managed by whatever put it there.
    if (!pf.info.controller && (pf.info.up != needed.up || pf.info.mtu != needed.mtu))
        steps.push_back(SetLink{InterfaceId{pf.info.pci, {}}, needed.up, needed.mtu});
    return steps;
}

std::optional<TestPath> path_to(std::optional<MacAddress> const& responder, HostView const& host) {
    if (!responder || *responder == MacAddress{}) return std::nullopt;
    bool all_known = true;
    for (auto const& [pci, pf] : host.kernel.pfs) {
        if (pf.info.mac == responder) return TestPath::internal_switch;
        for (auto const& vf : pf.vfs) {
            if (vf.settings.mac == responder) return TestPath::internal_switch;
            all_known = all_known && vf.settings.mac.has_value();
        }
    }
    if (all_known) return TestPath::wire;
    return std::nullopt;
}

}  // namespace vfmgr
