// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/find_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vfmgr::checks {
namespace {

constexpr std::array<std::string_view, 18> owner_files{
    "/etc/systemd/network/*.link",
    "/etc/systemd/network/*.network",
    "/etc/systemd/network/*.d/*.conf",
    "/run/systemd/network/*.link",
    "/run/systemd/network/*.network",
    "/etc/NetworkManager/system-connections/*",
    "/run/NetworkManager/system-connections/*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/netplan/*.yaml",
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/*",
    "/etc/udev/rules.d/*.rules",
    "/etc/systemd/system/*.service",
    "/etc/modprobe.d/*.conf",
    "/etc/sriov-operator/sriov-interface-config.yaml",
    "/etc/sriov-operator/pci/*",
    "/etc/crontab",
    "/etc/rc.local",
};

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

// A unit's instances that boot targets link to: "mlx5-vfs@ens1" of "mlx5-vfs@". If the links can't
// be read, the unit may be started.
struct Started {
    bool known = false;
    std::vector<std::string> instances;  // "" for a unit that is no template
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

// Returns a unit's owner once for each of its instances; nothing for a unit that is never started.
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

bool fits(std::vector<std::string> const& patterns, std::vector<std::string> const& names) {
    return patterns.empty() || std::ranges::any_of(patterns, [&](auto const& pattern) {
               return std::ranges::any_of(names,
                                          [&](auto const& name) { return matches(pattern, name); });
           });
}

}  // namespace

bool is_owner_file(std::string_view path) {
    bool const configures = path.starts_with("/etc/") || path.starts_with("/run/");
    return configures && std::ranges::any_of(owner_files, [&](auto const pattern) {
               return matches(pattern, path);
           });
}

std::vector<FoundOwner> find_owners(Machine const& machine) {
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
                                0,
                                module,
                                {{}, {}, {module}, {}, {}}}});
            }
    return all;
}

bool means(DeviceSelector const& of, DeviceSelector const& device) {
    auto macs = of.macs;
    for (auto& mac : macs)
        std::ranges::transform(mac, mac.begin(), [](char const byte) {
            return byte >= 'A' && byte <= 'F' ? static_cast<char>(byte - 'A' + 'a') : byte;
        });
    return fits(of.netdevs, device.netdevs) && fits(macs, device.macs) &&
           fits(of.drivers, device.drivers) && fits(of.pci, device.pci) &&
           fits(of.ibdevs, device.ibdevs);
}

std::string sentence_of(FoundOwner const& found) {
    auto const& [path, owner] = found;
    auto const place =
        owner.line_number == 0 ? path : fmt::format("{}:{}", path, owner.line_number);
    if (owner.kind != OwnerKind::network_manager || owner.name.empty())
        return fmt::format("{} {}", place, owner.does);
    return fmt::format("NetworkManager's connection {} ({}) {}", owner.name, place, owner.does);
}

std::vector<std::string> owners_of(Machine const& machine, DeviceSelector const& device) {
    std::vector<std::string> all;
    for (auto const& found : find_owners(machine)) {
        auto const& of = found.owner.of;
        if (means(of, device)) all.push_back(sentence_of(found) + (of.any() ? "" : " of it"));
    }
    return all;
}

}  // namespace vfmgr::checks
