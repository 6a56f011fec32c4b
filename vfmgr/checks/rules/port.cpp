// SPDX-License-Identifier: Apache-2.0
// Ports of RDMA NICs: link layer, state, the PF's netdev.
#include <fmt/format.h>
#include <net/if_arp.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_ports.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

Finding no_nic_port(Machine const& machine) {
    return nothing_in(machine.rdma_devices(), "there is no RDMA NIC");
}

bool is_vf(RdmaPortView const& view) {
    return view.pci && is_vf(*view.pci);
}

Evidence state_evidence(Machine const& machine, RdmaPortView const& view) {
    auto evidence = evidence_of(machine, folder_of(view) + "/state");
    evidence.text += fmt::format(", {}", view.port->phys_state());
    return evidence;
}

Remedy bring_up(MachineNetdev const& netdev) {
    return by_command(fmt::format("ip link set dev {} up", netdev.name));
}

// --- link layer ---

// LINK_TYPE_P1 and _P2 count the card's ports: a ConnectX-3's ports are the device's, a later
// card's are PCI functions.
int card_port(RdmaPortView const& view) {
    return view.device->ports.size() > 1 ? view.port->number : view.pci->address.function + 1;
}

// On a card that is all InfiniBand, nothing shows whether InfiniBand is intended. Beside an
// Ethernet port, and with no subnet manager that ever reached it, it is a port that was never
// switched over (IGX guide, "Switch the board Link Layer to Ethernet").
std::vector<Finding> judge_link_layer(Machine const& machine) {
    auto ports = nic_ports(machine);
    if (ports.empty()) return {no_nic_port(machine)};
    std::erase_if(ports, [](auto const& view) { return !view.pci || is_vf(view); });
    if (ports.empty()) return {not_applicable("no RDMA port belongs to a PF")};
    std::vector<Finding> findings;
    for (auto const& view : ports) {
        auto const& sm_lid = view.port->sm_lid;
        if (!view.infiniband() || sm_lid().value_or(0) != 0 || !sm_lid.is_read()) continue;
        auto const twin = std::ranges::find_if(ports, [&](auto const& other) {
            return other.ethernet() && share_slot(view.pci->address, other.pci->address);
        });
        if (twin == ports.end()) continue;
        auto const pci = to_string(view.pci->address);
        Remedy remedy{
            {fmt::format("mstconfig -y -d {} set LINK_TYPE_P{}=ETH", pci, card_port(view)),
             "reboot"},
            BlastRadius::reboot,
            "skip this if InfiniBand is intended; mstconfig is in the package mstflint, and "
            "mlxconfig of NVIDIA's tools takes the same arguments"};
        findings.push_back(
            warning(name_of(view),
                    fmt::format("is InfiniBand, while {} of the same card is Ethernet: RoCE, VLANs "
                                "and MAC addresses of VFs need Ethernet",
                                name_of(*twin)),
                    std::move(remedy),
                    {evidence_of(machine, folder_of(view) + "/link_layer"),
                     evidence_of(machine, folder_of(*twin) + "/link_layer")}));
    }
    return or_else(std::move(findings),
                   ok("", fmt::format("ports of RDMA NICs: {} Ethernet, {} InfiniBand",
                                      std::ranges::count_if(ports, &RdmaPortView::ethernet),
                                      std::ranges::count_if(ports, &RdmaPortView::infiniband))));
}

// --- state ---

// Returns why the port is down, and what brings it up.
std::pair<std::string, Remedy> cause_of_down(Machine const& machine, RdmaPortView const& view) {
    if (view.netdev && !view.netdev->up() && view.ethernet())
        return {fmt::format("because its netdev {} is down", view.netdev->name),
                bring_up(*view.netdev)};
    if (view.infiniband() && machine.kind == CheckedMachine::guest)
        return {"because the host or its subnet manager keeps this VF's port down",
                by_hand("on the host: ip link set dev PF vf N state auto; NVIDIA's opensm also "
                        "needs virt_enabled 2 in its configuration to serve VFs")};
    if (machine.kind == CheckedMachine::guest)
        return {"and has no link", by_hand("on the host: check the links of PF and VF (ip link "
                                           "show dev PF; ip link set dev PF vf N state auto)")};
    if (view.port->phys_state() == "Disabled")
        return {"and is switched off", view.netdev
                                           ? bring_up(*view.netdev)
                                           : by_hand("see the kernel's log for why the NIC or its "
                                                     "driver keeps the port off: journalctl -k")};
    return {"and detects no peer",
            by_hand("check the cable and its module, and that the port at the other end is on")};
}

// A port that is down is a fault if it is in use. Other ports are unused, as most second ports are;
// but when no port at all is up, that is the fault.
Finding judge_down(Machine const& machine, RdmaPortView const& view,
                   std::optional<bool> others_are_up) {
    auto const use = use_of(machine, view);
    auto const [why, remedy] = cause_of_down(machine, view);
    std::vector<Evidence> evidence{state_evidence(machine, view)};
    if (view.netdev)
        evidence.push_back(evidence_of(machine, "/sys/class/net/" + view.netdev->name + "/flags"));
    // An unattached VF of this host: its VM's driver will bring it up.
    bool const idle = use.empty() && (others_are_up.value_or(false) || is_vf(view));
    if (use.empty() && !idle && !view.pci)
        if (auto hidden = unread_so_far(machine, name_of(view))) return std::move(*hidden);
    if (use.empty() && !idle && !others_are_up)
        return not_known(name_of(view),
                         fmt::format("is down, {}; whether it is the only one was "
                                     "not collected",
                                     why),
                         std::move(evidence));
    if (idle)
        return ok(name_of(view), fmt::format("is down, {}; it is not in use", why),
                  std::move(evidence));
    if (use.empty())
        return warning(name_of(view), fmt::format("is down, {}; no port of an RDMA NIC is up", why),
                       remedy, std::move(evidence));
    return failed(name_of(view), fmt::format("is down, {}, but is in use: {}", why, use), remedy,
                  std::move(evidence));
}

std::vector<Finding> judge_state(Machine const& machine) {
    auto const ports = nic_ports(machine);
    std::optional<bool> any_active = std::ranges::any_of(
        ports, [](auto const& view) { return view.port->state.peek() == "ACTIVE"; });
    if (!*any_active &&
        std::ranges::any_of(ports, [](auto const& view) { return !view.port->state.is_read(); }))
        any_active.reset();
    std::vector<Finding> findings;
    for (auto const& view : ports) {
        auto const& state = view.port->state();
        if (view.active())
            findings.push_back(ok(name_of(view), "is active", {state_evidence(machine, view)}));
        else if (state == "DOWN")
            findings.push_back(judge_down(machine, view, any_active));
        else if (state.empty())
            findings.push_back(unknown(name_of(view), Unknown{folder_of(view) + "/state", 0}));
        else if (view.infiniband())
            findings.push_back(failed(
                name_of(view),
                fmt::format(
                    "is in state {}: its link is up, but no subnet manager has made it active",
                    state),
                by_hand("start a subnet manager, as port.subnet_manager describes"),
                {state_evidence(machine, view)}));
        else
            findings.push_back(warning(
                name_of(view), fmt::format("is in state {}, between down and active", state),
                by_hand("check again; if it stays so, see the kernel's log: journalctl -k"),
                {state_evidence(machine, view)}));
    }
    return or_else(std::move(findings), no_nic_port(machine));
}

// --- the PF's netdev ---

// While the PF is down, libvirt refuses it for <interface type='hostdev'>, rates are not accepted
// and VFs have no link (vfmgr/kernel/KERNEL.md#pfs-that-are-down).
std::vector<Finding> judge_pf_down(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    if (!machine.netdevs()) return {unknown("", machine.netdevs().error())};
    std::vector<Finding> findings;
    for (auto const& pf : *machine.pci()) {
        if (pf.vfs().empty() || !is_network(pf)) continue;
        for (auto const* netdev : netdevs_of(machine, pf.address)) {
            // Netdevs of the function's other ports, and children of IPoIB, don't affect the VFs.
            if (netdev != netdevs_of(machine, pf.address).front()) continue;
            auto const path = "/sys/class/net/" + netdev->name + "/flags";
            auto const flags = evidence_of(machine, path);
            if (auto const hidden = unseen(machine, path, netdev->name))
                findings.push_back(*hidden);
            else if (!netdev->hardware_type.is_read())
                findings.push_back(
                    unknown(netdev->name, {"/sys/class/net/" + netdev->name + "/type", 0}));
            else if (netdev->hardware_type() == ARPHRD_INFINIBAND)
                findings.push_back(
                    ok(netdev->name, "is IPoIB: VFs of InfiniBand have their link without it"));
            else if (netdev->up())
                findings.push_back(ok(netdev->name, "is up, as its VFs need", {flags}));
            else
                findings.push_back(
                    failed(netdev->name,
                           fmt::format(
                               "is down, but is the PF of {} VFs: they have no link, rates are not "
                               "accepted, and libvirt refuses them as <interface type='hostdev'>",
                               pf.vfs().size()),
                           bring_up(*netdev), {flags}));
        }
    }
    return or_else(std::move(findings), not_applicable("no PF has VFs"));
}

constexpr std::array rules_of_ports{
    Rule{"port.link_layer", "Ports of a card have the intended link layer",
         "IGX guide, Enabling RDMA, 3 Switch the board Link Layer to Ethernet", judge_link_layer,
         AppliesTo::host},
    Rule{"port.state", "RDMA ports in use are active",
         "setup guide, RDMA Connection Fails, ibstat; Linux drivers/infiniband/core/sysfs.c",
         judge_state},
    Rule{"port.pf_down", "PFs with VFs are up",
         "Linux drivers/net/ethernet/mellanox/mlx5/core/esw; libvirt virnetdev.c, PF is not online",
         judge_pf_down, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const port_rules = rules_of_ports;

}  // namespace vfmgr::checks
