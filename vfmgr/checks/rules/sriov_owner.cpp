// SPDX-License-Identifier: Apache-2.0
// Who else makes or changes the VFs of a PF: two owners undo each other's work.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/nic.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/sriov_owners.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::array<std::string_view, 14> owner_files{
    "/etc/systemd/network/*.link",
    "/etc/systemd/network/*.network",
    "/run/systemd/network/*.link",
    "/run/systemd/network/*.network",
    "/etc/NetworkManager/system-connections/*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/netplan/*.yaml",
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/*",
    "/etc/udev/rules.d/*.rules",
    "/etc/systemd/system/*.service",
    "/etc/modprobe.d/*.conf",
    "/etc/crontab",
    "/etc/rc.local",
};

struct FoundOwner {
    std::string path;
    SriovOwner owner;
};

bool is_owner_file(std::string_view path) {
    bool const configures = path.starts_with("/etc/") || path.starts_with("/run/");
    return configures && std::ranges::any_of(owner_files, [&](auto const pattern) {
               return matches(pattern, path);
           });
}

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

// What starts a unit at boot, by the links of its targets: "mlx5-vfs@ens1" of "mlx5-vfs@". Where
// those can't be seen, it may be started.
struct Started {
    bool known = false;
    std::vector<std::string> instances;  // "" of a unit that is no template
};
Started started(Machine const& machine, std::string_view unit) {
    constexpr std::string_view service = ".service";
    auto const stem = unit.substr(0, unit.size() - service.size());
    Started result;
    for (auto const& [folder, fact] : machine.facts.folders) {
        if (!folder.starts_with("/etc/") || (!matches("/etc/systemd/system/*.wants", folder) &&
                                             !matches("/etc/systemd/system/*.requires", folder)))
            continue;
        result.known = true;
        for (std::string_view name : fact.names) {
            if (name == unit) result.instances.emplace_back();
            if (stem.ends_with('@') && name.starts_with(stem) && name.ends_with(service))
                result.instances.emplace_back(
                    name.substr(stem.size(), name.size() - stem.size() - service.size()));
        }
    }
    return result;
}

bool is_running(Machine const& machine, std::string const& unit) {
    if (!machine.units) return true;
    auto const found = machine.units->find(unit);
    return found == machine.units->end() || found->second.active == "active" ||
           found->second.file == "enabled";
}

// A unit's owner once for each of its instances; none for what nobody starts.
std::vector<FoundOwner> of_unit(Machine const& machine, std::string const& path,
                                SriovOwner const& owner) {
    auto const name = file_name(path);
    if (name.starts_with("vfmgr")) return {};
    auto const starts = started(machine, name);
    if (!starts.known) return {{path, owner}};
    std::vector<FoundOwner> all;
    for (auto const& instance : starts.instances) {
        all.push_back({path, owner});
        auto const stem = name.substr(0, name.rfind(".service"));
        all.back().owner.name = fmt::format("{}{}.service", stem, instance);
        if (owner.of.any() && !instance.empty()) {
            auto& of = all.back().owner.of;
            (PciAddress::parse(instance) ? of.pci : of.netdevs).push_back(instance);
        }
    }
    return all;
}

std::vector<FoundOwner> all_owners(Machine const& machine) {
    std::vector<FoundOwner> all;
    bool const networkd = is_running(machine, "systemd-networkd.service");
    bool const network_manager = is_running(machine, "NetworkManager.service");
    for (auto const& [path, fact] : machine.facts.files) {
        if (fact.error != 0 || !is_owner_file(path)) continue;
        for (auto& owner : parse_sriov_owners(path, fact.bytes)) {
            if (owner.kind == OwnerKind::networkd && !networkd) continue;
            if (owner.kind == OwnerKind::network_manager && !network_manager) continue;
            if (owner.kind == OwnerKind::unit)
                for (auto& one : of_unit(machine, path, owner)) all.push_back(std::move(one));
            else
                all.push_back({path, std::move(owner)});
        }
    }
    if (!machine.parameters) return all;
    for (auto const& [name, value] : *machine.parameters)
        for (auto const suffix : {".num_vfs", ".max_vfs"})
            if (name.ends_with(suffix)) {
                auto const module = name.substr(0, name.find('.'));
                auto const text = fmt::format("{}={}", name, value);
                all.push_back({"/proc/cmdline",
                               {OwnerKind::module,
                                "makes VFs, " + text,
                                text,
                                module,
                                {{}, {}, {module}, {}, {}}}});
            }
    return all;
}

bool means(Machine const& machine, DeviceSelector const& of, PciDevice const& pf) {
    auto const fits = [](std::vector<std::string> const& patterns,
                         std::vector<std::string> const& values) {
        return patterns.empty() || std::ranges::any_of(patterns, [&](auto const& pattern) {
                   return std::ranges::any_of(
                       values, [&](auto const& value) { return matches(pattern, value); });
               });
    };
    std::vector<std::string> macs;
    if (machine.netdevs)
        for (auto const& netdev : *machine.netdevs)
            if (netdev.pci == pf.address && netdev.mac) macs.push_back(to_string(*netdev.mac));
    auto wanted_macs = of.macs;
    for (auto& mac : wanted_macs)
        std::ranges::transform(mac, mac.begin(), [](char const byte) {
            return byte >= 'A' && byte <= 'F' ? static_cast<char>(byte - 'A' + 'a') : byte;
        });
    auto const driver = pf.driver ? std::vector{*pf.driver} : std::vector<std::string>();
    return fits(of.netdevs, pf.netdevs) && fits(wanted_macs, macs) && fits(of.drivers, driver) &&
           fits(of.pci, {to_string(pf.address)}) && fits(of.ibdevs, pf.rdma_devices);
}

// One word for a shell, whatever is in it.
std::string for_shell(std::string_view word) {
    std::string quoted_word = "'";
    for (char const byte : word) quoted_word += byte == '\'' ? "'\\''" : std::string(1, byte);
    return quoted_word + "'";
}

Cure give_up(FoundOwner const& found) {
    auto const& owner = found.owner;
    constexpr std::string_view or_leave = ", or leave the PF to it: vfctl pf set PF --mode observe";
    switch (owner.kind) {
        case OwnerKind::network_manager:
            if (!owner.name.empty())
                return by_command(
                    fmt::format("nmcli connection modify {} remove sriov", for_shell(owner.name)),
                    fmt::format("when the connection goes down, its VFs go{}", or_leave));
            break;
        case OwnerKind::unit:
            return by_command(
                fmt::format("systemctl disable {}",
                            for_shell(owner.name.empty() ? file_name(found.path) : owner.name)),
                fmt::format("its VFs are then vfmgr's{}", or_leave));
        case OwnerKind::module:
        case OwnerKind::networkd:
        case OwnerKind::udev:
        case OwnerKind::netplan:
        case OwnerKind::ifupdown:
        case OwnerKind::other:
            break;
    }
    return by_hand(fmt::format("take it out of {}{}", found.path, or_leave));
}

Finding two_owners(Machine const& machine, FoundOwner const& found, PciDevice const* pf) {
    auto const of = pf ? fmt::format(" of {}", name_of(machine, *pf)) : std::string();
    return warning(pf ? to_string(pf->address) : std::string(),
                   fmt::format("{} {}{}, beside vfmgr", found.path, found.owner.does, of),
                   give_up(found), {{found.path, found.owner.line}});
}

// Configuration that root alone may read.
std::optional<Unknown> unseen(Machine const& machine) {
    constexpr auto profiles = "/etc/NetworkManager/system-connections";
    if (auto const names = machine.facts.names(profiles); !names) return names.error();
    for (auto const& [path, fact] : machine.facts.files)
        if (fact.error != 0 && is_owner_file(path)) return Unknown{path, fact.error};
    return std::nullopt;
}

std::vector<Finding> judge_owner(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    auto pfs = sriov_nics(machine);
    std::erase_if(pfs, [](auto const* nic) { return nic->total_vfs.value_or(0) == 0; });
    if (pfs.empty()) return {not_applicable("no NIC here has SR-IOV")};
    std::vector<Finding> findings;
    for (auto const& found : all_owners(machine)) {
        if (found.owner.of.any()) {
            findings.push_back(two_owners(machine, found, nullptr));
            continue;
        }
        for (auto const* pf : pfs)
            if (means(machine, found.owner.of, *pf))
                findings.push_back(two_owners(machine, found, pf));
    }
    if (auto const hidden = unseen(machine)) findings.push_back(unknown("", *hidden));
    if (findings.empty()) findings.push_back(ok("", "nothing else makes or changes VFs"));
    return findings;
}

constexpr std::array owner_group{
    Rule{
        "sriov.owner", "Nobody else owns the VFs",
        "systemd.link(5), systemd.network(5), nm-settings(5), netplan(5), modinfo of mlx4_core and "
        "ixgbe",
        AppliesTo::host, judge_owner},
};

}  // namespace

std::span<Rule const> owner_rules() {
    return owner_group;
}

}  // namespace vfmgr::checks
