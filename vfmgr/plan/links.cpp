// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/links.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {
namespace {

template <class T>
bool contains(std::vector<T> const& all, T const& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

LegState const* leg_of(PfState const& pf, LegId const& id) {
    auto it = std::find_if(pf.legs.begin(), pf.legs.end(),
                           [&](LegState const& leg) { return leg.id == id; });
    return it == pf.legs.end() ? nullptr : &*it;
}

bool has_peer(LegState const& leg, IpAddress const& address, WantedPeer const& peer) {
    return std::any_of(leg.peers.begin(), leg.peers.end(), [&](PeerEntry const& entry) {
        return entry.address == address && entry.mac == peer.mac;
    });
}

// The host may serve others at it.
bool there_before_vfmgr(LegState const& leg, PfBase const& base, IpAddress const& address) {
    return !leg.ours && contains(base.addresses, address);
}

// Somebody flushed the host's packet filter.
bool lost_its_filter(LegState const& leg, PfBase const& base, IpAddress const& address) {
    return !contains(leg.filtered, address) && !there_before_vfmgr(leg, base, address);
}

bool is_open_to(LegState const& leg, IpAddress const& address, WantedPeer const& peer) {
    return !contains(leg.closed, ClosedVm{address, peer.mac, peer.source});
}

// A tagged leg that does not exist yet starts from nothing.
void leg_up(std::vector<Step>& steps, LegState const* leg, LegId const& id, WantedLeg const& want,
            PfBase const& base, bool up, std::uint32_t mtu) {
    if (!leg && id.vlan) steps.push_back(AddVlanLeg{id});
    // An MTU is never lowered here: somebody else may have made the VLAN device.
    if (!leg || leg->up != up || leg->mtu < mtu)
        if (up || leg) steps.push_back(SetLink{id, up, mtu});
    for (auto const& address : want.addresses)
        if (!leg || !contains(leg->addresses, address) || lost_its_filter(*leg, base, address))
            steps.push_back(AddAddress{id, address});
    for (auto const& [address, peer] : want.peers)
        if (!leg || !has_peer(*leg, address, peer) || is_open_to(*leg, address, peer))
            steps.push_back(AddPeer{id, address, peer.mac, peer.source});
}

// Ours to remove: the host addresses of the PF's networks, unless they were there before vfmgr was.
bool ours(LegState const& leg, PfSpec const& spec, PfBase const& base, IpAddress const& address) {
    auto named = std::any_of(spec.networks.begin(), spec.networks.end(),
                             [&](Network const& n) { return n.host_address == address; });
    return named && !there_before_vfmgr(leg, base, address);
}

bool in_a_network(PfSpec const& spec, LegId const& leg, IpAddress const& address) {
    return std::any_of(spec.networks.begin(), spec.networks.end(), [&](Network const& n) {
        return n.vlan == leg.vlan && n.prefix.contains(address);
    });
}

void leg_down(std::vector<Step>& steps, LegState const& leg, WantedLeg const* want,
              PfSpec const& spec, PfBase const& base) {
    for (auto const& peer : leg.peers) {
        bool const wanted = want && want->peers.contains(peer.address);
        if (!wanted && (leg.ours || in_a_network(spec, leg.id, peer.address)))
            steps.push_back(RemovePeer{leg.id, peer.address});
    }
    for (auto const& address : leg.addresses) {
        bool const wanted = want && contains(want->addresses, address);
        if (!wanted && ours(leg, spec, base, address))
            steps.push_back(RemoveAddress{leg.id, address});
    }
    if (!leg.id.vlan || !leg.ours) return;
    if (!want)
        steps.push_back(RemoveVlanLeg{leg.id});
    else if (leg.mtu != want->mtu)  // networks with different MTUs share a VLAN
        steps.push_back(SetLink{leg.id, true, want->mtu});
}

}  // namespace

PfBase base_of(PfState const& pf) {
    PfBase base{pf.info.up, pf.info.mtu, pf.info.rdma_device.has_value(), {}};
    for (auto const& leg : pf.legs)
        if (!leg.ours)
            base.addresses.insert(base.addresses.end(), leg.addresses.begin(), leg.addresses.end());
    return base;
}

std::vector<Attachment> leases_on(DesiredState const& desired, PciAddress const& pf,
                                  std::string_view except) {
    std::vector<Attachment> leases;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf && id != except) leases.push_back(attachment);
    return leases;
}

std::vector<Attachment> attached_leases(DesiredState const& desired, PciAddress const& pf) {
    auto leases = leases_on(desired, pf, "");
    std::erase_if(leases,
                  [](Attachment const& lease) { return lease.state != AttachmentState::attached; });
    std::ranges::sort(leases, {}, [](Attachment const& lease) { return lease.vf.index; });
    return leases;
}

WantedLinks wanted_links(PciAddress const& address, PfSpec const& spec, PfBase const& base,
                         std::vector<Attachment> const& leases) {
    // A lent VF needs its PF up even without a network: drivers refuse VF rates and VLANs on a PF
    // that is down, and libvirt refuses such a PF (kernel-and-libvirt.md, 4).
    WantedLinks want{base.up || !leases.empty(), base.mtu, false, {}};
    LegId const untagged{address, {}};
    want.legs[untagged];
    for (auto const& lease : leases) {
        auto const* network =
            lease.spec.network ? find_network(spec, *lease.spec.network) : nullptr;
        if (!network) continue;
        want.mtu = std::max(want.mtu, network->mtu);
        want.rxe = want.rxe || network->rdma == RdmaMode::rxe;
        auto& leg = want.legs[LegId{address, network->vlan}];
        leg.mtu = std::max(leg.mtu, network->mtu);
        if (!contains(leg.addresses, network->host_address))
            leg.addresses.push_back(network->host_address);
        if (lease.address && lease.settings.mac)
            leg.peers[*lease.address] = {*lease.settings.mac, network->host_address};
    }
    want.legs[untagged].mtu = want.mtu;
    return want;
}

Result<void> require_own_leg(PfInfo const& pf, Network const& network) {
    if (!pf.controller) return {};
    return fail(Problem::conflict,
                fmt::format("{} is part of {}: the host can't have address {} of network {} on it",
                            display_name(pf), *pf.controller, to_string(network.host_address),
                            network.name),
                fmt::format("take it out (ip link set {} nomaster), or lend VFs without a network",
                            display_name(pf)));
}

std::vector<RdmaListener> reached_listeners(PfState const& pf, PfSpec const& spec,
                                            Network const& network) {
    auto const* const leg = leg_of(pf, LegId{pf.info.pci, network.vlan});
    auto const is_responders = [&](IpAddress const& address) {
        return std::ranges::find(spec.networks, address, &Network::host_address) !=
               spec.networks.end();
    };
    std::vector<RdmaListener> reached;
    // Whoever lies to RDMA CM about the address that it calls reaches all of an interface's.
    for (auto const& each : pf.listeners)
        if (!each.address ||
            (leg && contains(leg->addresses, *each.address) && !is_responders(*each.address)))
            reached.push_back(each);
    return reached;
}

std::string sentence(RdmaListener const& listener, PfInfo const& pf) {
    auto const who = listener.pid ? fmt::format("{} (pid {})", listener.comm, *listener.pid)
                                  : fmt::format("{} of the kernel", listener.comm);
    return fmt::format("{} listens by RDMA CM on {} of {}, port {}", who,
                       listener.address ? to_string(*listener.address) : "every address",
                       pf.rdma_device.value_or(display_name(pf)), listener.port);
}

std::vector<Step> links_up(PfState const& pf, WantedLinks const& want, PfBase const& base) {
    std::vector<Step> steps;
    LegId const untagged{pf.info.pci, {}};
    // The PF's MTU bounds that of its VLAN devices and VFs: lowered only in links_down.
    auto const mtu = std::max(want.mtu, pf.info.mtu);
    leg_up(steps, leg_of(pf, untagged), untagged, want.legs.at(untagged), base,
           want.up || pf.info.up, mtu);
    // SoftRoCE goes on the parent: a VLAN device refuses it, and its GID appears on the parent's.
    if (want.rxe && !pf.info.rdma_device) steps.push_back(AddRdmaLink{pf.info.pci});
    for (auto const& [id, leg] : want.legs)
        if (id.vlan) leg_up(steps, leg_of(pf, id), id, leg, base, true, leg.mtu);
    return steps;
}

std::vector<Step> links_closed(PfState const& pf, WantedLinks const& want, PfBase const& base) {
    std::vector<Step> steps;
    for (auto const& [id, wanted] : want.legs) {
        auto const* const leg = leg_of(pf, id);
        if (!leg || !leg->up) continue;
        for (auto const& address : wanted.addresses)
            if (contains(leg->addresses, address) && lost_its_filter(*leg, base, address))
                steps.push_back(AddAddress{id, address});
        for (auto const& [address, peer] : wanted.peers)
            if (is_open_to(*leg, address, peer) && contains(leg->addresses, peer.source))
                steps.push_back(AddPeer{id, address, peer.mac, peer.source});
    }
    return steps;
}

std::vector<Step> links_down(PfState const& pf, WantedLinks const& want, PfSpec const& spec,
                             PfBase const& base) {
    std::vector<Step> steps;
    for (auto leg = pf.legs.rbegin(); leg != pf.legs.rend(); ++leg) {
        auto const wanted = want.legs.find(leg->id);
        leg_down(steps, *leg, wanted == want.legs.end() ? nullptr : &wanted->second, spec, base);
    }
    if (pf.info.rdma_driver == "rxe" && !want.rxe && !base.rdma)
        steps.push_back(RemoveRdmaLink{pf.info.pci});
    // Whoever made it part of a bond or bridge since decides about it now.
    if (!pf.info.controller && (pf.info.up != want.up || pf.info.mtu != want.mtu))
        steps.push_back(SetLink{LegId{pf.info.pci, {}}, want.up, want.mtu});
    return steps;
}

}  // namespace vfmgr
