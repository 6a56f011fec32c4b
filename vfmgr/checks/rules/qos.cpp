// SPDX-License-Identifier: Apache-2.0
// Quality of service for RoCE: what keeps its packets from being dropped in congestion.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <set>

#include "api/types/text.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/rdma_ports.hpp"
#include "vfmgr/netlink/qos.hpp"
#include "vfmgr/netlink/vf.hpp"

namespace vfmgr::checks {
namespace {

bool counts(Machine const& machine, std::string const& path) {
    auto const text = machine.facts.text(path);
    return text && parse_digits(*text, {}).value_or(0) != 0;
}

// Loss would hurt here: the port has VFs, or has sent RDMA packets itself.
bool carries_rdma(Machine const& machine, RdmaPortView const& view) {
    if (view.pci && !view.pci->vfs().empty()) return true;
    return counts(machine, folder_of(view) + "/counters/port_xmit_packets");
}

std::vector<RdmaPortView> busy_roce_ports(Machine const& machine) {
    auto ports = nic_ports(machine);
    std::erase_if(ports, [&](auto const& view) {
        return !view.ethernet() || !view.active() || !view.netdev || !view.pci || view.pci->pf() ||
               is_representor(*view.netdev) || !carries_rdma(machine, view);
    });
    return ports;
}

Finding no_busy_port(Machine const& machine) {
    return nothing_in(machine.rdma_devices(),
                      "no active RoCE port of a NIC has VFs or has sent RDMA packets");
}

// For RoCE LAG, each port of the card in the bond, though one RDMA device covers both.
std::vector<MachineNetdev const*> wires_of(Machine const& machine, RdmaPortView const& view) {
    std::vector<MachineNetdev const*> wires{view.netdev};
    if (!view.netdev->master()) return wires;
    for (auto const& netdev : *machine.netdevs()) {
        bool const same_card = netdev.pci() && netdev.pci()->domain == view.pci->address.domain &&
                               netdev.pci()->bus == view.pci->address.bus;
        if (same_card && netdev.master() == view.netdev->master() &&
            netdev.name != view.netdev->name && !is_representor(netdev))
            wires.push_back(&netdev);
    }
    return wires;
}

Known<Dcb> dcb_of(Machine const& machine, std::string const& netdev) {
    auto const request = "DCB_CMD_IEEE_GET " + netdev;
    auto const answers = machine.facts.answers(request);
    if (!answers) return tl::unexpected(answers.error());
    for (auto const& payload : *answers)
        if (auto dcb = parse_dcb(std::as_bytes(std::span(payload)))) return std::move(*dcb);
    return tl::unexpected(Unknown{request, EBADMSG});
}

std::optional<Pause> pause_of(Machine const& machine, std::string const& netdev) {
    auto const answers = machine.facts.answers("ETHTOOL_MSG_PAUSE_GET " + netdev);
    if (!answers) return std::nullopt;
    for (auto const& payload : *answers)
        if (auto pause = parse_pause(std::as_bytes(std::span(payload)))) return pause;
    return std::nullopt;
}

std::vector<int> priorities_in(std::uint8_t bits) {
    std::vector<int> priorities;
    for (unsigned i = 0; i < dcb_priorities; ++i)
        if ((bits >> i & 1U) != 0) priorities.push_back(static_cast<int>(i));
    return priorities;
}

// ECN at work, or switched on in OFED's files. The inbox driver shows no setting, and the
// firmware's default is on, so only its counters prove it.
std::optional<Evidence> ecn_evidence(Machine const& machine, RdmaPortView const& view) {
    for (auto const* counter : {"np_cnp_sent", "rp_cnp_handled"}) {
        auto const path = fmt::format("{}/hw_counters/{}", folder_of(view), counter);
        if (counts(machine, path)) return evidence_of(machine, path);
    }
    for (unsigned priority = 0; priority < dcb_priorities; ++priority) {
        auto const path =
            fmt::format("/sys/class/net/{}/ecn/roce_rp/enable/{}", view.netdev->name, priority);
        if (counts(machine, path)) return evidence_of(machine, path);
    }
    return std::nullopt;
}

Remedy make_lossless(std::string const& netdev) {
    return {
        {fmt::format("dcb pfc set dev {} prio-pfc all:off 3:on", netdev),
         fmt::format("dcb app add dev {} dscp-prio 26:3", netdev)},
        BlastRadius::netdev,
        "make priority 3 lossless at the switch, too, and send RoCE with traffic class 106 "
        "(DSCP 26); ECN at the switch also works, and a direct cable to the peer needs neither"};
}

Finding judge_port_pfc(Machine const& machine, RdmaPortView const& view, Dcb const& dcb) {
    auto const& name = dcb.ifname;
    std::vector<Evidence> evidence{
        {"DCB_CMD_IEEE_GET " + name,
         dcb.pfc ? fmt::format("PFC {:#04x}", *dcb.pfc) : "reports no PFC"}};
    if (dcb.pfc && *dcb.pfc != 0)
        return ok(
            name,
            fmt::format("keeps priority {} lossless", fmt::join(priorities_in(*dcb.pfc), ", ")),
            std::move(evidence));
    if (auto const pause = pause_of(machine, name); pause && pause->sends && pause->receives) {
        evidence.push_back({"ETHTOOL_MSG_PAUSE_GET " + name, "rx on, tx on"});
        return ok(name,
                  "has flow control of the whole port: nothing is lost to a switch that has it "
                  "too, but either end stops all traffic when it is full",
                  std::move(evidence));
    }
    if (auto const ecn = ecn_evidence(machine, view)) {
        evidence.push_back(*ecn);
        return ok(name, "has no lossless priority; ECN handles congestion", std::move(evidence));
    }
    if (auto hidden = unread_so_far(machine, name)) return std::move(*hidden);
    return warning(
        name,
        fmt::format(
            "has no lossless priority (PFC) and no flow control, and nothing shows that ECN works: "
            "when a switch port is full, {} loses packets and its rate collapses",
            name_of(view)),
        make_lossless(name), std::move(evidence));
}

std::vector<Finding> judge_pfc(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& view : busy_roce_ports(machine))
        for (auto const* wire : wires_of(machine, view)) {
            auto const dcb = dcb_of(machine, wire->name);
            if (dcb)
                findings.push_back(judge_port_pfc(machine, view, *dcb));
            else if (dcb.error().error == EOPNOTSUPP)
                findings.push_back(judge_port_pfc(machine, view, Dcb{wire->name, {}, {}}));
            else
                findings.push_back(unknown(wire->name, dcb.error()));
        }
    return or_else(std::move(findings), no_busy_port(machine));
}

// Judges each wire of a busy RoCE port that has a lossless priority; returns `none` if there is
// nothing to report.
template <class Judge>
std::vector<Finding> judge_lossless_wires(Machine const& machine, Judge judge, char const* none) {
    auto const ports = busy_roce_ports(machine);
    if (ports.empty()) return {no_busy_port(machine)};
    std::vector<Finding> findings;
    for (auto const& view : ports)
        for (auto const* wire : wires_of(machine, view)) {
            auto const dcb = dcb_of(machine, wire->name);
            if (!dcb && dcb.error().error != EOPNOTSUPP)
                findings.push_back(unknown(wire->name, dcb.error()));
            if (!dcb || !dcb->pfc || *dcb->pfc == 0) continue;
            std::ranges::move(judge(view, *wire, *dcb), std::back_inserter(findings));
        }
    return or_else(std::move(findings), not_applicable(none));
}

// --- which packets are in the lossless priority ---

// OFED's "Global tclass=106"; nullopt if it is not set.
std::optional<std::uint8_t> global_traffic_class(Machine const& machine, RdmaPortView const& view) {
    auto const text = machine.facts.text(fmt::format("/sys/class/infiniband/{}/tc/{}/traffic_class",
                                                     view.device->name, view.port->number));
    constexpr std::string_view mark = "Global tclass=";
    auto const at = text ? text->find(mark) : std::string_view::npos;
    if (at == std::string_view::npos) return std::nullopt;
    auto const rest = text->substr(at + mark.size());
    auto const value = parse_digits(rest.substr(0, rest.find('\n')), {.max = 255});
    return value ? std::optional(static_cast<std::uint8_t>(*value)) : std::nullopt;
}

// The port takes priorities from VLAN tags. Without a VLAN there are none; only a VF's owner knows
// whether the VF tags.
Finding judge_by_tags(Machine const& machine, RdmaPortView const& view, Dcb const& dcb) {
    auto const& name = dcb.ifname;
    auto const lossless = fmt::format("{}", fmt::join(priorities_in(*dcb.pfc), ", "));
    bool const tagged = !view.pci->vfs().empty() || !uppers_of(machine, name).empty();
    if (tagged)
        return ok(name, fmt::format("takes priorities from VLAN tags: traffic must be in a VLAN "
                                    "with qos {} to be lossless",
                                    lossless));
    return warning(
        name,
        fmt::format("keeps priority {} lossless and takes priorities from VLAN tags, but nothing "
                    "here is tagged: RoCE has priority 0, which is not lossless",
                    lossless),
        Remedy{{fmt::format("dcb app add dev {} dscp-prio 26:{}", name,
                            priorities_in(*dcb.pfc).front())},
               BlastRadius::netdev,
               "also send RoCE with traffic class 106 (DSCP 26); the first entry makes the NIC use "
               "DSCP"},
        {{"DCB_CMD_IEEE_GET " + name, "no entry for a DSCP"}});
}

Finding judge_by_dscp(Machine const& machine, RdmaPortView const& view, Dcb const& dcb) {
    auto const& name = dcb.ifname;
    auto const is_lossless = [&](std::uint8_t dscp) {
        return (*dcb.pfc >> priority_of_dscp(dcb, dscp) & 1U) != 0;
    };
    constexpr std::uint8_t customary = 26;
    auto const traffic_class = global_traffic_class(machine, view);
    auto const used = static_cast<std::uint8_t>(traffic_class ? *traffic_class >> 2U : customary);
    std::set<int> lossless;
    for (std::uint8_t dscp = 0; dscp < 64; ++dscp)
        if (is_lossless(dscp)) lossless.insert(dscp);
    if (lossless.contains(used) || (!traffic_class && !lossless.empty()))
        return ok(name, fmt::format("keeps DSCP {} lossless", fmt::join(lossless, ", ")));
    return warning(
        name,
        fmt::format("maps DSCP {} to priority {}, but only priority {} is lossless: RoCE with "
                    "traffic class {} is not",
                    used, priority_of_dscp(dcb, used), fmt::join(priorities_in(*dcb.pfc), ", "),
                    traffic_class.value_or(106)),
        Remedy{{fmt::format("dcb app replace dev {} dscp-prio {}:{}", name, used,
                            priorities_in(*dcb.pfc).front())},
               BlastRadius::netdev,
               "use the same mapping as the switch"},
        {{"DCB_CMD_IEEE_GET " + name, fmt::format("DSCP {} has priority {}, PFC {:#04x}", used,
                                                  priority_of_dscp(dcb, used), *dcb.pfc)}});
}

std::vector<Finding> judge_dscp(Machine const& machine) {
    return judge_lossless_wires(
        machine,
        [&](RdmaPortView const& view, MachineNetdev const&, Dcb const& dcb) {
            return std::vector{trusts_dscp(dcb) ? judge_by_dscp(machine, view, dcb)
                                                : judge_by_tags(machine, view, dcb)};
        },
        "no priority of a RoCE port is lossless");
}

// --- the VLANs set for VFs ---

Known<VfSettings> vf_settings_of(Machine const& machine, std::string const& netdev) {
    auto const request = fmt::format("RTM_GETLINK {} VFs", netdev);
    auto const answers = machine.facts.answers(request);
    if (!answers) return tl::unexpected(answers.error());
    if (answers->empty()) return tl::unexpected(Unknown{request, EBADMSG});
    return parse_vf_settings(std::as_bytes(std::span(answers->front())));
}

std::string vlan_words(Vlan const& vlan) {
    return fmt::format("VLAN {}{} qos {}", vlan.id,
                       vlan.proto == VlanProtocol::dot1ad ? " (802.1ad)" : "", vlan.qos);
}

Finding judge_vf_vlan(std::string const& pf, PciDevice const& device, std::uint16_t index,
                      Vlan const& vlan, std::uint8_t pfc) {
    auto const found = device.vfs().find(index);
    auto const subject =
        found == device.vfs().end() ? fmt::format("{} vf {}", pf, index) : to_string(found->second);
    auto const lossless = priorities_in(pfc);
    bool const dot1ad = vlan.proto == VlanProtocol::dot1ad;
    std::vector<Evidence> evidence{
        {fmt::format("RTM_GETLINK {} VFs", pf), fmt::format("vf {} {}", index, vlan_words(vlan))},
        {"DCB_CMD_IEEE_GET " + pf, fmt::format("PFC {:#04x}, no entry for a DSCP", pfc)}};
    if ((pfc >> vlan.qos & 1U) != 0)
        return ok(
            subject,
            fmt::format("VF {} of {} is in {}, which is lossless", index, pf, vlan_words(vlan)),
            std::move(evidence));
    return warning(subject,
                   fmt::format("VF {} of {} is in {}, but only priority {} is lossless: RoCE "
                               "packets of its VM are dropped when a switch port is full",
                               index, pf, vlan_words(vlan), fmt::join(lossless, ", ")),
                   Remedy{{fmt::format("ip link set dev {} vf {} vlan {} qos {}{}", pf, index,
                                       vlan.id, lossless.front(), dot1ad ? " proto 802.1ad" : "")},
                          BlastRadius::netdev,
                          fmt::format("affects this VM only; for a VF that vfmgrd attached, set it "
                                      "at its next attachment: vfctl attach --vlan {}:{}{}. The "
                                      "switch must keep that priority lossless, too",
                                      vlan.id, lossless.front(), dot1ad ? ":802.1ad" : "")},
                   std::move(evidence));
}

// Judges one PF's VFs that were put into a VLAN; in the others the guest tags as it likes.
std::vector<Finding> judge_vf_vlans_of(Machine const& machine, MachineNetdev const& wire,
                                       Dcb const& dcb) {
    auto const* const device = wire.pci() ? find_pci(machine, *wire.pci()) : nullptr;
    if (!device || device->vfs().empty()) return {};
    if (trusts_dscp(dcb))
        return {ok(wire.name,
                   "uses DSCP: the qos of its VFs' VLANs matters only to switches that use tags")};
    auto const settings = vf_settings_of(machine, wire.name);
    if (!settings) return {unknown(wire.name, settings.error())};
    std::vector<Finding> findings;
    for (auto const& [index, spec] : *settings)
        if (spec.vlan && spec.vlan->id != 0)
            findings.push_back(judge_vf_vlan(wire.name, *device, index, *spec.vlan, *dcb.pfc));
    return findings;
}

std::vector<Finding> judge_vf_vlans(Machine const& machine) {
    return judge_lossless_wires(
        machine,
        [&](RdmaPortView const&, MachineNetdev const& wire, Dcb const& dcb) {
            return judge_vf_vlans_of(machine, wire, dcb);
        },
        "no VF of a RoCE port with a lossless priority is in a VLAN");
}

constexpr std::array rules_of_qos{
    Rule{"qos.pfc", "RoCE is protected from packet loss",
         "IEEE 802.1Qbb; dcb-pfc(8); NVIDIA, RoCE configuration of ConnectX", judge_pfc,
         AppliesTo::host},
    Rule{"qos.dscp", "RoCE's packets are in the lossless priority",
         "dcb-app(8); Linux mlx5/core/en_dcbnl.c, trust state", judge_dscp, AppliesTo::host},
    Rule{"qos.vf_vlan", "VFs in VLANs are in the lossless priority",
         "ip-link(8), vf vlan qos; IEEE 802.1Qbb; Linux mlx5/core/en_dcbnl.c, trust state",
         judge_vf_vlans, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const qos_rules = rules_of_qos;

}  // namespace vfmgr::checks
