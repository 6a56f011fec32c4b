// SPDX-License-Identifier: Apache-2.0
// RDMA in software: SoftRoCE (rxe) and iWARP (siw). Their rates are fiction and are never judged.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/port_lines.hpp"
#include "vfmgr/machine/rdma_ports.hpp"
#include "vfmgr/machine/rdma_stack.hpp"
#include "vfmgr/machine/sources.hpp"

namespace vfmgr::checks {
namespace {

// Prefix of the links that vfmgrd makes for its tests and makes again at boot; vf-guest's in a VM
// start with "rxe_".
constexpr std::string_view own_prefix = "vfmgr_";

bool has_hardware(Machine const& machine) {
    return !nic_ports(machine).empty() ||
           (machine.pci() && std::ranges::any_of(*machine.pci(), is_connectx));
}

std::vector<RdmaPortView> soft_ports(Machine const& machine) {
    auto ports = rdma_ports(machine);
    std::erase_if(ports, [](auto const& view) { return !view.software; });
    return ports;
}

// A link that a unit or script creates, and the file that says so.
struct ConfiguredLink {
    RdmaLinkCommand command;
    std::string path;
    bool enabled = true;
};

// A unit runs at boot only if another one pulls it in; other files always take effect.
bool is_enabled(Machine const& machine, std::string_view path) {
    constexpr std::string_view units = "/etc/systemd/system/";
    if (!path.starts_with(units) ||
        !machine.facts.names("/etc/systemd/system/multi-user.target.wants"))
        return true;
    auto const wants = machine.facts.folders("/etc/systemd/system/*.wants");
    return std::ranges::any_of(wants, [&](auto const& folder) {
        auto const& names = folder.second->names;
        return std::ranges::find(names, path.substr(units.size())) != names.end();
    });
}

std::vector<ConfiguredLink> configured_links(Machine const& machine) {
    std::vector<ConfiguredLink> all;
    for (auto const pattern :
         {"/etc/systemd/system/*.service", "/etc/network/interfaces", "/etc/network/interfaces.d/*",
          "/etc/rc.local", "/etc/crontab", "/etc/udev/rules.d/*.rules"})
        for (auto const& [path, fact] : machine.facts.files(pattern))
            for (auto& command : parse_rdma_link_commands(fact->bytes))
                all.push_back({std::move(command), std::string(path), is_enabled(machine, path)});
    return all;
}

// "%i" of a unit's template, or a shell variable: its value can't be read here.
bool is_open(RdmaLinkCommand const& command) {
    return (command.name + command.netdev).find_first_of("%$*{") != std::string::npos;
}

bool is_configured(std::vector<ConfiguredLink> const& all, std::string_view type) {
    return std::ranges::any_of(
        all, [&](ConfiguredLink const& link) { return link.enabled && link.command.type == type; });
}

// --- rdma_rxe ---

// Built out of tree, or for RDMA modules other than the loaded ones (OFED's).
std::optional<Finding> refused_symbols(Machine const& machine) {
    if (!machine.log() || module_loaded(machine, "rdma_rxe")) return std::nullopt;
    if (auto const* line = find_line(*machine.log(), {"rdma_rxe: Unknown symbol", "udp_"}))
        return failed(
            "rdma_rxe", "could not be loaded: the kernel's UDP tunnels are missing",
            Remedy{{"modprobe udp_tunnel", "modprobe ip6_udp_tunnel", "modprobe rdma_rxe"},
                   BlastRadius::none,
                   "modprobe also loads the modules that a module needs; insmod does not"},
            {evidence_of(*line)});
    for (auto const* words : {"rdma_rxe: Unknown symbol", "rdma_rxe: disagrees about version"})
        if (auto const* line = find_line(*machine.log(), {words}))
            return failed(
                "rdma_rxe",
                "could not be loaded: it was built for RDMA modules other than the loaded ones",
                by_hand("install OFED's kernel modules with rxe, or remove OFED if there is no "
                        "RDMA NIC: OFED replaces ib_core and may leave the distribution's rdma_rxe "
                        "behind, which can't be used with it",
                        BlastRadius::host),
                {evidence_of(*line)});
    return std::nullopt;
}

// The kernel's own rdma_rxe needs the kernel's own ib_core.
std::optional<Finding> replaced_by_ofed(Machine const& machine) {
    if (module_loaded(machine, "rdma_rxe")) return std::nullopt;
    auto const file = module_file(machine, "rdma_rxe");
    auto const core = module_file(machine, "ib_core");
    bool const mixed =
        file && core && file->starts_with("kernel/") && !core->starts_with("kernel/");
    if (!mixed) return std::nullopt;
    return failed(
        "rdma_rxe",
        "is the kernel's own, and can't be loaded: another RDMA stack (OFED) has replaced "
        "the ib_core that it needs",
        by_hand("use the NIC's own RDMA, or remove OFED if there is no RDMA NIC: OFED "
                "replaces ib_core and has no rdma_rxe",
                BlastRadius::host),
        {{"modules.dep", fmt::format("{}, {}", *file, *core)}});
}

std::vector<Finding> judge_module(Machine const& machine) {
    bool const configured =
        is_configured(configured_links(machine), "rxe") || !soft_ports(machine).empty();
    if (!configured && has_hardware(machine))
        return {not_applicable("this machine has an RDMA NIC, and SoftRoCE is not configured")};
    if (auto finding = refused_symbols(machine)) return {std::move(*finding)};
    auto const exists = module_exists(machine, "rdma_rxe");
    if (!exists) return {unknown("", exists.error())};
    if (auto finding = *exists ? replaced_by_ofed(machine) : std::nullopt)
        return {std::move(*finding)};
    if (*exists)
        return {ok("rdma_rxe", module_loaded(machine, "rdma_rxe")
                                   ? "is loaded"
                                   : "is installed; the kernel loads it with the first link")};
    if (auto hidden = unread_so_far(machine, "rdma_rxe")) return {std::move(*hidden)};
    auto const option = kernel_option(machine, "CONFIG_RDMA_RXE");
    return {failed(
        "rdma_rxe",
        fmt::format("is not installed for kernel {}{}", machine.release(),
                    option ? ": CONFIG_RDMA_RXE=" + *option : ""),
        by_kernel_module(machine, "rdma_rxe", "CONFIG_RDMA_RXE"),
        {{fmt::format("/lib/modules/{}/modules.dep", machine.release()), "has no rdma_rxe"}})};
}

// --- siw ---

std::vector<Finding> judge_siw(Machine const& machine) {
    auto const exists = module_exists(machine, "siw");
    if (exists.value_or(false)) return {ok("siw", "iWARP in software is available")};
    for (auto const& link : configured_links(machine)) {
        if (link.command.type != "siw" || !link.enabled) continue;
        if (!exists) return {unknown("", exists.error())};
        return {failed(
            "siw", fmt::format("{} configures a siw link, but this kernel has no siw", link.path),
            by_hand("make an rxe link instead (type rxe), or build the module from the kernel's "
                    "source with CONFIG_RDMA_SIW=m; Debian's kernels are built without it"),
            {evidence_of(machine, link.path)})};
    }
    if (auto const hidden = unseen(machine, "/etc/systemd/system/siw.service")) return {*hidden};
    return {not_applicable("iWARP in software (siw) is not configured; Debian's kernels lack it")};
}

// --- links ---

Finding judge_soft_port(Machine const& machine, RdmaPortView const& view) {
    auto const& name = view.device->name;
    if (!machine.netdevs()) return unknown(name, machine.netdevs().error());
    if (!view.netdev && !view.device->parent.is_read())
        return not_known(name, "the netdev that it is on was not collected");
    if (!view.netdev)
        return failed(
            name,
            fmt::format("is on {}, which is no longer present",
                        view.netdev_name.empty() ? "a netdev" : view.netdev_name),
            by_command(
                fmt::format("rdma link delete {}", name),
                "it may have moved to another network namespace, where SoftRoCE can't follow"));
    auto const& netdev = *view.netdev;
    auto const folder = "/sys/class/net/" + netdev.name;
    for (auto const& file : {folder + "/flags", folder_of(view) + "/state"})
        if (auto const hidden = unseen(machine, file, name)) return *hidden;
    if (!netdev.up())
        return failed(name, fmt::format("is on {}, which is down", netdev.name),
                      by_command(fmt::format("ip link set dev {} up", netdev.name)),
                      {evidence_of(machine, folder + "/flags")});
    if (netdev.carrier() == false)
        return failed(name, fmt::format("is on {}, which has no link", netdev.name),
                      by_hand("check its cable, or the devices below it"),
                      {evidence_of(machine, folder + "/carrier")});
    constexpr int mtu_min = 1024 + 80;  // for the packets that every network carries
    if (netdev.mtu() != 0 && netdev.mtu() < mtu_min)
        return warning(
            name,
            fmt::format("is on {}, whose MTU of {} leaves it 512 bytes a packet or "
                        "less",
                        netdev.name, netdev.mtu()),
            Remedy{{fmt::format("ip link set dev {} mtu 1500", netdev.name)}, BlastRadius::netdev},
            {evidence_of(machine, folder + "/mtu")});
    if (!view.active())
        return warning(
            name, fmt::format("is {} though {} is up", view.port->state(), netdev.name),
            Remedy{{fmt::format("rdma link delete {}", name),
                    fmt::format("rdma link add {} type rxe netdev {}", name, netdev.name)},
                   BlastRadius::none,
                   "afterwards restart the programs that use it"},
            {evidence_of(machine, folder_of(view) + "/state")});
    return ok(name, fmt::format("is active on {}, MTU {}", netdev.name, netdev.mtu()),
              {evidence_of(machine, folder_of(view) + "/state")});
}

std::optional<Finding> judge_configured(Machine const& machine, ConfiguredLink const& link) {
    auto const& [name, type, netdev] = link.command;
    if (type != "rxe" || !link.enabled || is_open(link.command)) return std::nullopt;
    for (auto const& view : soft_ports(machine))
        if (view.device->name == name || view.netdev_name == netdev) return std::nullopt;
    auto const command = fmt::format("rdma link add {} type rxe netdev {}", name, netdev);
    if (machine.netdevs() && !find_netdev(machine, netdev))
        return failed(
            name,
            fmt::format("{} configures it on {}, but there is no {}", link.path, netdev, netdev),
            by_hand(fmt::format("name an existing netdev in {}", link.path)),
            {evidence_of(machine, link.path)});
    return failed(name,
                  fmt::format("{} configures it on {}, but it does not exist", link.path, netdev),
                  by_command(command,
                             "the kernel refuses it on a VLAN: create it on the netdev below, "
                             "where the VLAN's addresses have GIDs"),
                  {evidence_of(machine, link.path)});
}

std::vector<Finding> judge_link(Machine const& machine) {
    if (!machine.rdma_devices()) return {unknown("", machine.rdma_devices().error())};
    std::vector<Finding> findings;
    for (auto const& view : soft_ports(machine)) findings.push_back(judge_soft_port(machine, view));
    for (auto const& link : configured_links(machine))
        if (auto finding = judge_configured(machine, link)) findings.push_back(std::move(*finding));
    return or_else(
        std::move(findings),
        not_applicable("there is no SoftRoCE link, and none is configured; to create one: rdma "
                       "link add rxe0 type rxe netdev NAME"));
}

// --- parameters ---

// max_qp, crc_disable and others were parameters of the driver before it was in Linux (rxe_cfg).
std::vector<Finding> judge_parameters(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& [path, fact] : machine.facts.files("/etc/modprobe.d/*.conf")) {
        for (auto const line : lines_in(fact->bytes)) {
            auto const words = words_in(line);
            if (words.size() < 3 || words[0] != "options" || words[1] != "rdma_rxe") continue;
            findings.push_back(
                warning("rdma_rxe",
                        fmt::format("{} sets {}, but rdma_rxe has no parameters: it has no effect",
                                    path, words[2].substr(0, words[2].find('='))),
                        by_command(fmt::format("sed -i '/^options rdma_rxe /d' {}", path)),
                        {{std::string(path), std::string(line)}}));
        }
    }
    if (auto const hidden = unseen(machine, "/etc/modprobe.d/rdma_rxe.conf");
        hidden && findings.empty())
        return {*hidden};
    return or_else(std::move(findings),
                   ok("", "no file sets parameters of rdma_rxe, which has none"));
}

// --- at boot ---

Remedy make_at_boot(RdmaPortView const& view) {
    auto const& name = view.device->name;
    auto const unit = fmt::format("softroce-{}.service", name);
    return {{fmt::format("printf '%s\\n' '[Unit]' After=network-online.target "
                         "Wants=network-online.target '[Service]' Type=oneshot "
                         "RemainAfterExit=yes "
                         "'ExecStart=/usr/bin/env rdma link add {} type rxe netdev {}' "
                         "'[Install]' WantedBy=multi-user.target > /etc/systemd/system/{}",
                         name, view.netdev_name, unit),
             "systemctl daemon-reload", fmt::format("systemctl enable {}", unit)},
            BlastRadius::none};
}

bool is_own(Machine const& machine, std::string_view name) {
    if (machine.kind == CheckedMachine::guest) return name.starts_with("rxe_");
    if (name.starts_with(own_prefix)) return true;
    auto const answer = machine.facts.command(own_links_query);
    return answer && parse_vfmgr_links((*answer)->out).contains(name);
}

Finding judge_at_boot(Machine const& machine, RdmaPortView const& view) {
    auto const& name = view.device->name;
    if (is_own(machine, name))
        return ok(name, "belongs to vfmgr, which creates it again after a boot");
    ConfiguredLink const* asleep = nullptr;
    auto const all = configured_links(machine);
    for (auto const& link : all) {
        if (link.command.name != name && link.command.netdev != view.netdev_name &&
            !is_open(link.command))
            continue;
        if (link.enabled) return ok(name, fmt::format("is created at boot by {}", link.path));
        asleep = &link;
    }
    if (asleep) {
        auto const unit = asleep->path.substr(asleep->path.rfind('/') + 1);
        return warning(name, fmt::format("{} would create it at boot, but is not enabled", unit),
                       by_command(fmt::format("systemctl enable {}", unit)),
                       {{asleep->path, "is in no folder *.wants"}});
    }
    if (auto hidden = unread_so_far(machine, name)) return std::move(*hidden);
    return warning(name, "nothing in /etc creates it again after a boot", make_at_boot(view),
                   {{"/etc/systemd/system/*.service", "no rdma link add of this link"}});
}

std::vector<Finding> judge_persistence(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& view : soft_ports(machine)) findings.push_back(judge_at_boot(machine, view));
    return or_else(std::move(findings),
                   nothing_in(machine.rdma_devices(), "there is no SoftRoCE link"));
}

constexpr std::array rules_of_soft_rdma{
    Rule{"soft_rdma.module", "The kernel has SoftRoCE",
         "setup guide, SoftRoCE, Kernel Module Check; Linux drivers/infiniband/sw/rxe",
         judge_module},
    Rule{"soft_rdma.siw", "iWARP in software is available where it is configured",
         "Software RDMA Configuration (type siw); Debian's kernel configuration", judge_siw},
    Rule{"soft_rdma.link", "SoftRoCE links work",
         "setup guide, SoftRoCE Not Working, rdma link; Linux rxe_net.c", judge_link},
    Rule{"soft_rdma.parameters", "No file sets parameters that rdma_rxe does not have",
         "setup guide, SoftRoCE Parameters; Linux has no /sys/module/rdma_rxe/parameters",
         judge_parameters},
    Rule{"soft_rdma.persistence", "SoftRoCE links are created again after a boot",
         "setup guide, Make Persistent Across Reboots", judge_persistence},
};

}  // namespace

constinit std::span<Rule const> const soft_rdma_rules = rules_of_soft_rdma;

}  // namespace vfmgr::checks
