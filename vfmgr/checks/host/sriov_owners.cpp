// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/sriov_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "api/types/addresses.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/files.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/sources.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::chrono::seconds question_time_max{2};  // the report of a drift waits for it

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
    for (auto const pattern : {"/etc/systemd/system/*.wants", "/etc/systemd/system/*.requires"})
        for (auto const& [folder, fact] : machine.facts.folders(pattern)) {
            result.known = true;
            for (std::string_view name : fact->names) {
                if (name == unit) result.instances.emplace_back();
                if (stem.ends_with('@') && name.starts_with(stem) && name.ends_with(service))
                    result.instances.emplace_back(
                        name.substr(stem.size(), name.size() - stem.size() - service.size()));
            }
        }
    if (machine.reads->first()) result.known = true;
    return result;
}

// The service that acts on the file; empty if none has to run.
std::string_view service_of(OwnerKind kind) {
    if (kind == OwnerKind::networkd) return "systemd-networkd.service";
    if (kind == OwnerKind::network_manager) return "NetworkManager.service";
    return {};
}

// False only for a service that is known to be off.
bool may_run(Machine const& machine, std::string_view unit) {
    auto const* const found = unit.empty() ? nullptr : find_unit(machine, unit);
    return !found || found->active == "active" || found->file == "enabled";
}

// Returns a unit's owner once for each of its instances; nothing for a unit that is never started.
std::vector<FoundOwner> of_unit(Machine const& machine, std::string const& path,
                                SriovOwner const& owner) {
    auto const name = file_name(path);
    if (name.starts_with("vfmgr")) return {};
    auto const starts = started(machine, name);
    if (!starts.known) return {{path, owner}};  // the links of boot targets were not collected
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

bool DeviceSelector::any() const {
    return netdevs.empty() && macs.empty() && drivers.empty() && pci.empty() && ibdevs.empty();
}

bool is_owner_file(std::string_view path) {
    return std::ranges::any_of(owner_sources,
                               [&](auto const& source) { return matches(source.pattern, path); });
}

std::vector<FoundOwner> find_owners(Machine const& machine) {
    std::vector<FoundOwner> all;
    for (auto const& source : owner_sources)
        for (auto const& [path, fact] : machine.facts.files(source.pattern))
            for (auto& owner : parse_sriov_owners(std::string(path), fact->bytes)) {
                if (!may_run(machine, service_of(owner.kind))) continue;
                if (owner.kind == OwnerKind::unit)
                    for (auto& one : of_unit(machine, std::string(path), owner))
                        all.push_back(std::move(one));
                else
                    all.push_back({std::string(path), std::move(owner)});
            }
    if (!machine.parameters()) return all;
    for (auto const& [name, value] : *machine.parameters()) {
        if (!name.ends_with(".num_vfs") && !name.ends_with(".max_vfs")) continue;
        auto const module = name.substr(0, name.find('.'));
        auto const text = fmt::format("{}={}", name, value);
        SriovOwner owner{OwnerKind::module, "makes VFs, " + text, text, 0, module, {}};
        owner.of.drivers = {module};
        all.push_back({"/proc/cmdline", std::move(owner)});
    }
    return all;
}

bool means(DeviceSelector const& of, DeviceSelector const& device) {
    auto macs = of.macs;
    for (auto& mac : macs) mac = lowered(mac);
    return fits(of.netdevs, device.netdevs) && fits(macs, device.macs) &&
           fits(of.drivers, device.drivers) && fits(of.pci, device.pci) &&
           fits(of.ibdevs, device.ibdevs);
}

std::string sentence_of(FoundOwner const& found) {
    auto const& [path, owner] = found;
    auto const place =
        owner.line_number == 0 ? path : fmt::format("{}:{}", path, owner.line_number);
    if (owner.kind == OwnerKind::network_manager && !owner.name.empty())
        return fmt::format("NetworkManager's connection {} ({}) {}", owner.name, place, owner.does);
    if (owner.kind == OwnerKind::libvirt_network && !owner.name.empty())
        return fmt::format("libvirt's network {} ({}) {}", owner.name, place, owner.does);
    return fmt::format("{} {}", place, owner.does);
}

std::vector<std::string> owners_of(Machine const& machine, DeviceSelector const& device) {
    std::vector<std::string> all;
    for (auto const& found : find_owners(machine)) {
        auto const& of = found.owner.of;
        if (means(of, device) && !is_overridden(machine, found.path, device).value_or(false))
            all.push_back(sentence_of(found) + (of.any() ? "" : " of it"));
    }
    return all;
}

Facts collect_owners(std::string const& root) {
    Facts facts;
    Files files(root, "");
    for (auto const& expected : owner_sources) files.read(expected, facts);
    files.read({"/proc/cmdline"}, facts);
    for (auto const pattern : folder_sources)
        if (pattern.starts_with("/etc/systemd/system/")) files.list(pattern, facts);
    // systemd is slow: query it only where the answer matters.
    auto const found = find_owners(read_machine(facts));
    bool const asks = std::ranges::any_of(found, [](auto const& one) {
        return one.owner.kind == OwnerKind::networkd ||
               one.owner.kind == OwnerKind::network_manager;
    });
    if (!root.empty() || !asks) return facts;
    auto const question = unit_question({"NetworkManager.service", "systemd-networkd.service"});
    facts.commands.emplace(
        question, run_line(question, std::chrono::steady_clock::now() + question_time_max));
    return facts;
}

// Other programs that make or change the VFs of a PF: two owners undo each other's work.

namespace {

// The PF's names, as files may use them.
DeviceSelector names_of(Machine const& machine, PciDevice const& pf) {
    DeviceSelector names{pf.netdevs(), {}, {}, {to_string(pf.address)}, pf.rdma_devices()};
    if (pf.driver()) names.drivers = {*pf.driver()};
    // libvirt's networks may list the VFs themselves.
    for (auto const& [index, vf] : pf.vfs()) names.pci.push_back(to_string(vf));
    if (machine.netdevs())
        for (auto const& netdev : *machine.netdevs())
            if (netdev.pci() == pf.address && netdev.mac())
                names.macs.push_back(to_string(*netdev.mac()));
    return names;
}

// Quotes one word for a shell, whatever is in it.
std::string for_shell(std::string_view word) {
    std::string quoted_word = "'";
    for (char const byte : word) quoted_word += byte == '\'' ? "'\\''" : std::string(1, byte);
    return quoted_word + "'";
}

Remedy give_up(FoundOwner const& found) {
    auto const& owner = found.owner;
    constexpr std::string_view or_leave = "; or leave the PF to it: vfctl pf set PF --mode observe";
    switch (owner.kind) {
        case OwnerKind::network_manager:
            if (!owner.name.empty())
                return by_command(
                    fmt::format("nmcli connection modify {} remove sriov", for_shell(owner.name)),
                    fmt::format("its VFs are removed when the connection goes down{}", or_leave));
            break;
        case OwnerKind::unit:
            return by_command(
                fmt::format(
                    "systemctl disable {}",
                    for_shell(owner.name.empty() ? found.path.substr(found.path.rfind('/') + 1)
                                                 : owner.name)),
                fmt::format("its VFs then belong to vfmgr{}", or_leave));
        case OwnerKind::sriov_operator:
            return by_hand(fmt::format(
                "remove the PF from its SriovNetworkNodePolicy, or set externallyManaged there{}",
                or_leave));
        case OwnerKind::libvirt_network: {
            auto const name = for_shell(owner.name);
            return {{"virsh net-autostart --disable " + name, "virsh net-destroy " + name},
                    BlastRadius::none,
                    fmt::format("VMs that run keep their VFs of it, and can't start again with an "
                                "interface of this network{}",
                                or_leave)};
        }
        case OwnerKind::openstack:
            return by_hand(fmt::format(
                "take the PF out of physical_device_mappings (neutron) and device_spec (nova), and "
                "restart both agents{}",
                or_leave));
        case OwnerKind::module:
        case OwnerKind::networkd:
        case OwnerKind::udev:
        case OwnerKind::netplan:
        case OwnerKind::ifupdown:
        case OwnerKind::other:
            break;
    }
    return by_hand(fmt::format("remove it from {}{}", found.path, or_leave));
}

Finding two_owners(Machine const& machine, FoundOwner const& found, PciDevice const* pf) {
    auto const subject = pf ? to_string(pf->address) : std::string();
    auto const of = pf ? fmt::format(" of {}", name_of(machine, *pf)) : std::string();
    // Whether it runs could not be asked; a file of /run shows that it has run since boot.
    bool const by_service =
        !service_of(found.owner.kind).empty() && !found.path.starts_with("/run/");
    if (by_service && !machine.units()) return unknown(subject, machine.units().error());
    return warning(subject, fmt::format("{}{}, in addition to vfmgr", sentence_of(found), of),
                   give_up(found), {{found.path, found.owner.line}});
}

std::optional<Finding> judge_owner(Machine const& machine, FoundOwner const& found,
                                   PciDevice const& pf) {
    auto const names = names_of(machine, pf);
    if (!means(found.owner.of, names)) return std::nullopt;
    auto const overridden = is_overridden(machine, found.path, names);
    if (!overridden) return unknown(to_string(pf.address), overridden.error());
    if (*overridden) return std::nullopt;
    return two_owners(machine, found, &pf);
}

// Configuration that only root may read.
std::optional<Unknown> unseen(Machine const& machine) {
    constexpr auto profiles = "/etc/NetworkManager/system-connections";
    if (auto const names = machine.facts.names(profiles); !names) return names.error();
    for (auto const& [path, fact] : machine.facts.unnoted().files)
        if (fact.error != 0 && is_owner_file(path)) return Unknown{path, fact.error};
    return std::nullopt;
}

std::string no_owner(Machine const& machine) {
    std::size_t files = 0;
    for (auto const& source : owner_sources) files += machine.facts.files(source.pattern).size();
    if (files == 0) return "no program that is known to create or change VFs has a file here";
    return fmt::format("no known setting that creates or changes VFs in {} of other programs",
                       files == 1 ? std::string("the one file") : fmt::format("{} files", files));
}

}  // namespace

std::vector<Finding> judge_sriov_owner(Machine const& machine) {
    auto pfs = sriov_nics(machine);
    std::erase_if(pfs, [](auto const* nic) { return nic->total_vfs().value_or(0) == 0; });
    if (pfs.empty()) return {nothing_in(machine.pci(), "no NIC here has SR-IOV")};
    std::vector<Finding> findings;
    for (auto const& found : find_owners(machine)) {
        // Nothing else makes VFs of a ConnectX-3: sriov.capable explains it.
        if (found.owner.kind == OwnerKind::module && found.owner.name == "mlx4_core") continue;
        if (found.owner.of.any()) {
            findings.push_back(two_owners(machine, found, nullptr));
            continue;
        }
        for (auto const* pf : pfs)
            if (auto finding = judge_owner(machine, found, *pf))
                findings.push_back(std::move(*finding));
    }
    if (auto const hidden = unseen(machine)) findings.push_back(unknown("", *hidden));
    return or_else(std::move(findings), ok("", no_owner(machine)));
}

}  // namespace vfmgr::checks
