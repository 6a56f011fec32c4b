// SPDX-License-Identifier: Apache-2.0
// What RoCE needs from the network device below it: GIDs of its addresses, a node GUID, MTU.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/rdma_ports.hpp"

namespace vfmgr::checks {
namespace {

// RoCE ports of NICs and of SoftRoCE.
std::vector<RdmaPortView> roce_ports(Machine const& machine) {
    auto ports = rdma_ports(machine);
    std::erase_if(ports, [&](auto const& view) {
        return !view.ethernet() || !view.parent.empty() || is_iwarp(machine, *view.device);
    });
    return ports;
}

Finding no_roce_port(Machine const& machine) {
    return nothing_in(machine.rdma_devices(), "there is no RoCE port");
}

// --- GIDs ---

// Netdevs whose addresses make the port's GIDs: its own, a bond over it, VLANs on it.
std::vector<MachineNetdev const*> netdevs_with_gids(Machine const& machine,
                                                    RdmaPortView const& view) {
    std::set<std::string> names;
    if (!view.netdev_name.empty()) names.insert(view.netdev_name);
    for (auto const& gid : view.port->gids())
        if (!gid.netdev().empty()) names.insert(gid.netdev());
    std::vector<MachineNetdev const*> found;
    for (auto const& name : names)
        if (auto const* const netdev = find_netdev(machine, name)) found.push_back(netdev);
    return found;
}

Evidence gid_evidence(RdmaPortView const& view, Gid const& gid) {
    return {fmt::format("{}/gids/{}", folder_of(view), gid.index),
            fmt::format("{} ({}, {})", gid.gid, gid.type(), gid.netdev())};
}

// "fe80::0ac0:ebff:fe21:03da" is made from the MAC 08:c0:eb:21:03:da; other link-local addresses
// prove nothing.
std::optional<MacAddress> mac_in(Gid const& gid) {
    auto const address = gid_address(gid.gid);
    if (!address || address->family != IpAddress::Family::v6) return std::nullopt;
    auto const& octets = address->octets;
    if (octets[0] != 0xfe || octets[1] != 0x80 || octets[11] != 0xff || octets[12] != 0xfe)
        return std::nullopt;
    constexpr std::uint8_t universal = 0x02;
    MacAddress mac;
    mac.octets = {static_cast<std::uint8_t>(octets[8] ^ universal),
                  octets[9],
                  octets[10],
                  octets[13],
                  octets[14],
                  octets[15]};
    return mac;
}

// A MAC that is set while the driver registers is missed, and RDMA goes on with GIDs of the old one
// (RDMA/core: Fix stale RoCE GIDs during netdev events at registration).
std::optional<Finding> judge_stale(RdmaPortView const& view, MachineNetdev const& netdev) {
    Gid const* stale = nullptr;
    for (auto const& gid : view.port->gids()) {
        if (gid.netdev() != netdev.name) continue;
        auto const mac = mac_in(gid);
        if (!mac) continue;
        if (mac == netdev.mac()) return std::nullopt;
        if (!stale) stale = &gid;
    }
    if (!stale || !netdev.mac()) return std::nullopt;
    auto const mac = to_string(*netdev.mac());
    return failed(
        name_of(view),
        fmt::format("has link-local GIDs of {}, but {} has the MAC address {}: peers that use "
                    "these GIDs get no answer",
                    to_string(*mac_in(*stale)), netdev.name, mac),
        Remedy{{fmt::format("ip link set dev {} address {}", netdev.name, mac)},
               BlastRadius::netdev,
               "setting the same address again makes the kernel rebuild the GIDs; if a udev rule "
               "sets it, set it before the driver binds"},
        {gid_evidence(view, *stale), {"/sys/class/net/" + netdev.name + "/address", mac}});
}

std::optional<Finding> judge_address(RdmaPortView const& view, MachineNetdev const& netdev,
                                     NetdevAddress const& address) {
    Gid const* only_v1 = nullptr;
    for (auto const& gid : view.port->gids()) {
        if (gid_address(gid.gid) != address.address) continue;
        if (contains(gid.type(), "v2") || gid.type().empty()) return std::nullopt;
        only_v1 = &gid;
    }
    auto const text = fmt::format("{}/{}", to_string(address.address), address.prefix_length);
    if (only_v1)
        return failed(name_of(view),
                      fmt::format("has the address {} of {} as RoCE v1 only, which routers and "
                                  "peers with RoCE v2 don't understand",
                                  text, netdev.name),
                      by_hand("enable RoCE v2 in the NIC's firmware and driver; ConnectX-3 has it "
                              "only as ConnectX-3 Pro"),
                      {gid_evidence(view, *only_v1)});
    return failed(
        name_of(view),
        fmt::format("has no GID for {}, an address of {}: RDMA over it fails", text, netdev.name),
        Remedy{{fmt::format("ip address del {0} dev {1}; ip address add {0} dev {1}", text,
                            netdev.name)},
               BlastRadius::netdev,
               "adding the address again makes the kernel create its GID; afterwards set the "
               "routes that use it again"},
        {{folder_of(view) + "/gids",
          fmt::format("{} GIDs, none for this address", view.port->gids().size())}});
}

// Without it librdmacm crashes or reports "no device" (perftest#64, sriov-network-operator#267).
std::optional<Finding> judge_node_guid(Machine const& machine, RdmaPortView const& view) {
    auto const& guid = view.device->node_guid();
    if (view.software || !guid || guid->value != 0) return std::nullopt;
    bool const guest = machine.kind == CheckedMachine::guest;
    std::string note =
        "set the VF's MAC address (ip link set dev PF vf N mac ADDRESS), then unbind the VF from "
        "its driver and bind it again: its node GUID comes from the MAC address that it had when "
        "its driver bound";
    if (guest) note = "on the host, before the VF is attached: " + note;
    return failed(
        view.device->name, "has no node GUID, so RDMA CM (rping, -R) fails", by_hand(note),
        {evidence_of(machine,
                     fmt::format("/sys/class/infiniband/{}/node_guid", view.device->name))});
}

bool in_switchdev_mode(Machine const& machine, PciAddress const& pci) {
    return machine.netdevs() && std::ranges::any_of(*machine.netdevs(), [&](auto const& netdev) {
               return netdev.pci() == pci && is_representor(netdev);
           });
}

// A port without any GID has RoCE switched off, and does Ethernet only.
std::optional<Finding> judge_no_gids(Machine const& machine, RdmaPortView const& view) {
    if (!view.port->gids().empty()) return std::nullopt;
    auto const first = folder_of(view) + "/gids/0";
    if (auto const first_text = machine.facts.text(first);
        !first_text && !first_text.error().absent())
        return unknown(name_of(view), first_text.error());
    if (!view.active() || !view.pci) return unread_so_far(machine, name_of(view));
    if (in_switchdev_mode(machine, view.pci->address))
        return ok(name_of(view), "has no GIDs: in switchdev mode only its VFs do RDMA");
    if (auto hidden = unread_so_far(machine, name_of(view))) return hidden;
    return failed(name_of(view), "is active but has no GID at all: RoCE is switched off",
                  by_enabling_roce(view.pci->address), {absence_evidence(first)});
}

std::vector<Finding> judge_port_gids(Machine const& machine, RdmaPortView const& view) {
    std::vector<Finding> findings;
    std::vector<std::string> served;
    if (auto finding = judge_node_guid(machine, view)) findings.push_back(std::move(*finding));
    // A GID that was not read may be the one that an address needs; diagnose() reports it.
    if (auto const& gids = view.port->gids;
        !gids.is_read() ||
        std::ranges::any_of(gids.peek(), [](Gid const& gid) { return !gid.type.is_read(); })) {
        static_cast<void>(gids());
        for (auto const& gid : gids.peek()) static_cast<void>(gid.type());
        return findings;
    }
    if (auto finding = judge_no_gids(machine, view)) return {std::move(*finding)};
    for (auto const* netdev : netdevs_with_gids(machine, view)) {
        if (auto finding = judge_stale(view, *netdev)) findings.push_back(std::move(*finding));
        if (!netdev->up()) continue;
        if (auto hidden = unread_so_far(machine, name_of(view))) return {std::move(*hidden)};
        for (auto const& address : addresses_on(machine, *netdev)) {
            served.push_back(to_string(address.address));
            if (auto finding = judge_address(view, *netdev, address))
                findings.push_back(std::move(*finding));
        }
    }
    if (!findings.empty()) return findings;
    bool const in_guest = machine.kind == CheckedMachine::guest && view.netdev && !view.software;
    for (auto const* const file : {"flags", "ifindex"})
        if (auto const hidden =
                served.empty() && in_guest
                    ? unseen(machine, fmt::format("/sys/class/net/{}/{}", view.netdev->name, file),
                             name_of(view))
                    : std::nullopt)
            return {*hidden};
    if (served.empty() && in_guest && addresses_of(machine))
        return {
            warning(name_of(view),
                    fmt::format("{} has no IP address: RDMA has only GIDs that no router forwards, "
                                "and RDMA CM none at all",
                                view.netdev->name),
                    by_hand(fmt::format(
                        "give it its address in the network: ip address add ADDRESS/LENGTH dev {}",
                        view.netdev->name)),
                    {{"RTM_GETADDR", "only link-local addresses, or none"}})};
    auto detail = fmt::format("has {} GIDs", view.port->gids().size());
    if (!served.empty())
        detail += fmt::format(", including those of {}", fmt::join(served, " and "));
    return {ok(name_of(view), detail)};
}

std::vector<Finding> judge_gids(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& view : roce_ports(machine))
        for (auto& finding : judge_port_gids(machine, view)) findings.push_back(std::move(finding));
    return or_else(std::move(findings), no_roce_port(machine));
}

// --- MTU ---

// The largest RDMA payload that fits a netdev's frames (vfmgr/rdma/RDMA.md#path-mtu).
int path_mtu(int mtu) {
    constexpr int headers = 80;
    for (int const size : {4096, 2048, 1024, 512})
        if (mtu - headers >= size) return size;
    return 256;
}

Evidence mtu_evidence(Machine const& machine, std::string const& netdev) {
    return evidence_of(machine, "/sys/class/net/" + netdev + "/mtu");
}

Finding mtu_differs(Machine const& machine, MachineNetdev const& small, MachineNetdev const& large,
                    std::string detail) {
    return warning(
        small.name, std::move(detail),
        Remedy{{fmt::format("ip link set dev {} mtu {}", small.name, large.mtu())},
               BlastRadius::netdev,
               fmt::format("alternatively, set MTU {} on {}, if switches and peers have {}",
                           small.mtu(), large.name, small.mtu())},
        {mtu_evidence(machine, small.name), mtu_evidence(machine, large.name)});
}

// A VF of this host whose frames its PF does not accept.
std::optional<Finding> judge_vf_mtu(Machine const& machine, RdmaPortView const& view) {
    if (!view.netdev || !view.netdev->pci()) return std::nullopt;
    auto const* const function = find_pci(machine, *view.netdev->pci());  // SoftRoCE's, too
    if (!function || !function->pf()) return std::nullopt;
    auto const pfs = netdevs_of(machine, *function->pf());
    if (pfs.empty() || pfs.front()->mtu() == 0 || view.netdev->mtu() <= pfs.front()->mtu())
        return std::nullopt;
    return mtu_differs(
        machine, *pfs.front(), *view.netdev,
        fmt::format("has MTU {}, but its VF {} has {}: the NIC drops the VF's longer frames",
                    pfs.front()->mtu(), view.netdev->name, view.netdev->mtu()));
}

std::optional<Finding> judge_bond_mtu(Machine const& machine, RdmaPortView const& view) {
    auto const* const bond = view.netdev && view.netdev->master()
                                 ? find_netdev(machine, *view.netdev->master())
                                 : nullptr;
    if (!bond || bond->mtu() == 0 || bond->mtu() == view.netdev->mtu()) return std::nullopt;
    bool const less = view.netdev->mtu() < bond->mtu();
    return mtu_differs(
        machine, less ? *view.netdev : *bond, less ? *bond : *view.netdev,
        fmt::format("has MTU {}, but {} has {}, though one is part of the other",
                    less ? view.netdev->mtu() : bond->mtu(), less ? bond->name : view.netdev->name,
                    less ? bond->mtu() : view.netdev->mtu()));
}

// RDMA takes its packet size from the port, whatever the MTU of the VLAN that carries the packets.
std::optional<Finding> judge_vlan_mtu(Machine const& machine, RdmaPortView const& view) {
    if (!view.netdev) return std::nullopt;
    for (auto const* netdev : netdevs_with_gids(machine, view)) {
        auto const lower =
            fmt::format("/sys/class/net/{}/lower_{}", netdev->name, view.netdev->name);
        bool const above = machine.facts.target(lower).has_value();
        bool const bond = view.netdev->master() == netdev->name;
        if (!above || bond || netdev->mtu() == 0 ||
            path_mtu(netdev->mtu()) >= path_mtu(view.netdev->mtu()))
            continue;
        return mtu_differs(
            machine, *netdev, *view.netdev,
            fmt::format("has MTU {}, but RDMA on it sends packets of {} bytes, because {} has MTU "
                        "{}: a network with the smaller MTU drops them",
                        netdev->mtu(), path_mtu(view.netdev->mtu()), view.netdev->name,
                        view.netdev->mtu()));
    }
    return std::nullopt;
}

std::vector<Finding> judge_mtu(Machine const& machine) {
    auto const ports = roce_ports(machine);
    if (ports.empty()) return {no_roce_port(machine)};
    std::vector<Finding> findings;
    for (auto const& view : ports) {
        if (!view.netdev || view.netdev->mtu() == 0) continue;
        auto finding = judge_vf_mtu(machine, view);
        if (!finding) finding = judge_bond_mtu(machine, view);
        if (!finding) finding = judge_vlan_mtu(machine, view);
        if (!finding && !view.active()) continue;
        if (!finding) {
            auto detail = fmt::format("has MTU {}: RDMA sends up to {} bytes in a packet",
                                      view.netdev->mtu(), path_mtu(view.netdev->mtu()));
            if (path_mtu(view.netdev->mtu()) < 4096)
                detail += ", 4096 from MTU 4200 on, if switches and peers have it too";
            finding = ok(view.netdev->name, std::move(detail),
                         {mtu_evidence(machine, view.netdev->name)});
        }
        findings.push_back(std::move(*finding));
    }
    return or_else(std::move(findings), not_applicable("no RoCE port is active"));
}

constexpr std::array rules_of_roce{
    Rule{"port.gids", "RoCE ports have a GID for each address",
         "setup guide, RDMA Connection Fails, show_gids; Linux core/roce_gid_mgmt.c", judge_gids},
    Rule{"port.mtu", "MTUs match",
         "IGX guide, 4 Configure the IP addresses, MTU 9000; Linux iboe_get_mtu()", judge_mtu},
};

}  // namespace

constinit std::span<Rule const> const roce_rules = rules_of_roce;

}  // namespace vfmgr::checks
