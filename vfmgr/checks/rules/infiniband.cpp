// SPDX-License-Identifier: Apache-2.0
// What only InfiniBand has: a subnet manager, which gives each port its address, and IPoIB.
#include <fmt/format.h>
#include <net/if_arp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_ports.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

// --- the subnet manager ---

std::pair<std::string, Unit const*> opensm_unit(Machine const& machine) {
    // NVIDIA's package names it opensmd.
    for (auto const* name : {"opensm.service", "opensmd.service"})
        if (auto const* unit = find_unit(machine, name); unit && unit->installed())
            return {name, unit};
    return {};
}

Remedy start_subnet_manager(Machine const& machine) {
    if (machine.kind == CheckedMachine::guest)
        return by_hand(
            "start a subnet manager on the host or in the fabric; none can run in a VM over a VF");
    auto const [name, unit] = opensm_unit(machine);
    if (unit && unit->active == "active")
        return by_hand(
            "opensm runs here but does not serve this port, because it binds to one port's GUID: "
            "check /var/log/opensm.log, and guid in its configuration");
    auto const enable = fmt::format("systemctl enable --now {}", unit ? name : "opensm.service");
    std::string const note =
        "run only one in each fabric: if a switch or another host runs it, check the cable to it "
        "instead; if Ethernet is intended, see port.link_layer";
    if (unit) return by_command(enable, note);
    Remedy remedy = by_command(enable, note);
    auto const debian = machine.facts.text("/etc/debian_version");
    if (debian)
        remedy.commands.insert(remedy.commands.begin(), "apt-get install --yes opensm");
    else if (debian.error().absent())
        remedy.commands.insert(remedy.commands.begin(), "dnf install --assumeyes opensm");
    else
        remedy.note += "; install the package opensm first";
    return remedy;
}

// Debian's path, and Red Hat's.
std::string opensm_configuration(Machine const& machine) {
    constexpr auto red_hat = "/etc/rdma/opensm.conf";
    return machine.facts.text(red_hat) ? red_hat : "/etc/opensm/opensm.conf";
}

// The value of the last line "virt_enabled N" that is no comment.
std::string virt_enabled(Machine const& machine) {
    std::string value;
    auto rest = machine.facts.text(opensm_configuration(machine)).value_or("");
    while (!rest.empty()) {
        auto const words = words_in(take_line(rest));
        if (words.size() == 2 && words[0] == "virt_enabled") value = words[1];
    }
    return value;
}

// The address that the subnet manager gave the port; sysfs prints "0x1c".
std::optional<std::int64_t> lid_of(Machine const& machine, RdmaPortView const& view) {
    auto const text = machine.facts.text(folder_of(view) + "/lid");
    return text ? parse_number(*text) : std::nullopt;
}

// InfiniBand's "no LID yet": 0, and the permissive one.
bool has_none(std::optional<std::int64_t> lid) {
    constexpr std::int64_t permissive = 0xffff;
    return lid == 0 || lid == permissive;
}

Evidence lid_evidence(Machine const& machine, RdmaPortView const& view) {
    return evidence_of(machine, folder_of(view) + "/lid");
}

// The port's subnet manager is at no port of this machine.
bool is_elsewhere(Machine const& machine, std::vector<RdmaPortView> const& ports,
                  RdmaPortView const& view) {
    return std::ranges::none_of(ports, [&](RdmaPortView const& one) {
        auto const lid = lid_of(machine, one);
        return !lid || std::cmp_equal(*lid, view.port->sm_lid().value_or(0));
    });
}

std::optional<Finding> judge_virtual_ports(Machine const& machine,
                                           std::vector<RdmaPortView> const& ports,
                                           RdmaPortView const& view) {
    if (!view.pci || is_elsewhere(machine, ports, view) || view.pci->vfs().empty()) return {};
    auto const [name, unit] = opensm_unit(machine);
    bool const serves = unit && unit->active == "active";
    if (!serves || virt_enabled(machine) == "2") return {};
    if (auto hidden = unread_so_far(machine, name_of(view))) return hidden;
    auto const path = opensm_configuration(machine);
    Remedy remedy{{}, BlastRadius::none, "virt_enabled is an option of NVIDIA's opensm"};
    if (machine.facts.text(path))
        remedy.commands.push_back(fmt::format("sed -i '/^virt_enabled /d' {}", path));
    remedy.commands.push_back(fmt::format("echo 'virt_enabled 2' >> {}", path));
    remedy.commands.push_back(fmt::format("systemctl restart {}", name));
    return warning(name_of(view),
                   fmt::format("has {} VFs, but the opensm of this host is not configured to serve "
                               "virtual ports: ports of VFs stay down",
                               view.pci->vfs().size()),
                   std::move(remedy), {evidence_of(machine, path)});
}

// A VF's port is a virtual one: a subnet manager may serve the PF and know nothing of it.
Finding judge_virtual_port(RdmaPortView const& view, std::vector<Evidence> evidence) {
    return failed(
        name_of(view),
        "is a VF's port with a link but without an address (LID): the subnet manager does not "
        "serve virtual ports, or none runs",
        by_hand(
            "start a subnet manager in the fabric if none runs (none can run in a VM over a VF), "
            "and let it serve virtual ports: NVIDIA's opensm does with virt_enabled 2 in its "
            "configuration, other managers have an option of their own"),
        std::move(evidence));
}

std::vector<Finding> judge_subnet_manager(Machine const& machine) {
    auto const ports = nic_ports(machine);
    if (std::ranges::none_of(ports, &RdmaPortView::infiniband))
        return {nothing_in(machine.rdma_devices(), "no port of an RDMA NIC is InfiniBand")};
    std::vector<Finding> findings;
    for (auto const& view : ports) {
        // Without a link no subnet manager can reach it: port.state reports that.
        if (!view.infiniband() || view.port->phys_state() != "LinkUp") continue;
        auto const evidence = evidence_of(machine, folder_of(view) + "/sm_lid");
        auto const lid = lid_of(machine, view);
        if (!view.port->sm_lid()) {
            findings.push_back(unknown(name_of(view), Unknown{folder_of(view) + "/sm_lid", 0}));
        } else if (view.pci && is_vf(*view.pci) && (*view.port->sm_lid() == 0 || has_none(lid))) {
            findings.push_back(judge_virtual_port(view, {lid_evidence(machine, view), evidence}));
        } else if (*view.port->sm_lid() != 0 && has_none(lid)) {
            findings.push_back(failed(
                name_of(view),
                fmt::format("has no address (LID), though there is a subnet manager at LID {}",
                            *view.port->sm_lid()),
                by_hand("see the subnet manager's log (opensm: /var/log/opensm.log) for why it "
                        "does not serve this port: a partition, or a node that it ignores"),
                {lid_evidence(machine, view), evidence}));
        } else if (*view.port->sm_lid() == 0) {
            findings.push_back(failed(name_of(view),
                                      "has a link but no subnet manager: it has no address (LID) "
                                      "and can't reach any peer",
                                      start_subnet_manager(machine), {evidence}));
        } else if (auto finding = judge_virtual_ports(machine, ports, view)) {
            findings.push_back(std::move(*finding));
        } else {
            findings.push_back(
                ok(name_of(view),
                   fmt::format("is managed by the subnet manager at LID {}", *view.port->sm_lid()),
                   {evidence}));
        }
    }
    return or_else(std::move(findings), not_applicable("no InfiniBand port has a link"));
}

// --- IPoIB ---

MachineNetdev const* parent_of(Machine const& machine, MachineNetdev const& child) {
    if (child.iflink() == child.ifindex()) return nullptr;
    auto const found = std::ranges::find_if(*machine.netdevs(), [&](auto const& one) {
        return one.ifindex() == child.iflink() && one.hardware_type() == ARPHRD_INFINIBAND;
    });
    return found == machine.netdevs()->end() ? nullptr : &*found;
}

Evidence flags_of(Machine const& machine, MachineNetdev const& netdev) {
    return evidence_of(machine, "/sys/class/net/" + netdev.name + "/flags");
}

// ipoib_stop() of a parent stops its children; ipoib_open() starts a child alone, which then "may
// be not functioning"; the kernel says so only in its debug messages.
std::optional<Finding> judge_child(Machine const& machine, MachineNetdev const& child) {
    auto const* parent = parent_of(machine, child);
    if (!parent || parent->up()) return std::nullopt;
    auto remedy = by_command(fmt::format("ip link set dev {} up", parent->name),
                             "this starts its children, too");
    std::vector<Evidence> evidence{flags_of(machine, *parent), flags_of(machine, child)};
    if (auto hidden = unread_so_far(machine, child.name)) return hidden;
    if (child.up())
        return failed(
            child.name,
            fmt::format("is up, but IPoIB needs its parent {}, which is down", parent->name),
            std::move(remedy), std::move(evidence));
    if (addresses_on(machine, child).empty()) return std::nullopt;
    return failed(child.name,
                  fmt::format("has an address, but is down with its parent {}", parent->name),
                  std::move(remedy), std::move(evidence));
}

std::vector<Finding> judge_ipoib(Machine const& machine) {
    if (!machine.netdevs()) return {unknown("", machine.netdevs().error())};
    std::vector<Finding> findings;
    for (auto const& netdev : *machine.netdevs()) {
        if (netdev.hardware_type() != ARPHRD_INFINIBAND) continue;
        if (auto finding = judge_child(machine, netdev))
            findings.push_back(std::move(*finding));
        else if (parent_of(machine, netdev) || netdev.up() || addresses_on(machine, netdev).empty())
            findings.push_back(ok(netdev.name, netdev.up() ? "is up" : "is down, and not in use"));
        else
            findings.push_back(
                warning(netdev.name, "has an address, but is down",
                        by_command(fmt::format("ip link set dev {} up", netdev.name)),
                        {flags_of(machine, netdev)}));
    }
    return or_else(std::move(findings), not_applicable("there is no IPoIB"));
}

constexpr std::array rules_of_infiniband{
    Rule{"port.subnet_manager", "InfiniBand ports have a subnet manager",
         "setup guide, RDMA Connection Fails, sminfo, and SR-IOV Limitations, virt_enabled; "
         "recordings of VFs' ports without a LID",
         judge_subnet_manager},
    Rule{"port.ipoib", "IPoIB's interfaces are up with their parents",
         "Linux drivers/infiniband/ulp/ipoib/ipoib_main.c, ipoib_open() and ipoib_stop()",
         judge_ipoib, AppliesTo::both, RestsOn::all_devices},
};

}  // namespace

constinit std::span<Rule const> const infiniband_rules = rules_of_infiniband;

}  // namespace vfmgr::checks
