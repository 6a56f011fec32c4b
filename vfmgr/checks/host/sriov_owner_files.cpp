// SPDX-License-Identifier: Apache-2.0
// Owners of VFs whose files are lines: "key = value", rules, scripts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "api/types/addresses.hpp"
#include "api/types/text.hpp"
#include "vfmgr/checks/host/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

std::string_view without_quotes(std::string_view text) {
    bool const quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                        text.back() == text.front();
    return quoted ? text.substr(1, text.size() - 2) : text;
}

// Calls `take` with every line that is no comment.
template <class Take>
void each_setting_line(std::string_view text, Take take) {
    each_line(text, [&](SettingLine const& line) {
        auto const content = trimmed(line.text);
        if (!content.empty() && content.front() != '#' && content.front() != ';') take(line);
    });
}

// "key = value", each without blanks and quotes.
struct Assignment {
    std::string_view key, value;
};
std::optional<Assignment> assignment_in(std::string_view line, char sign) {
    auto value = trimmed(line);
    auto const key = take_until(value, sign);
    if (!key) return std::nullopt;
    return Assignment{trimmed(*key), without_quotes(trimmed(value))};
}

constexpr std::array<std::string_view, 2> count_files{"sriov_numvfs", "mlx5_num_vfs"};

// [Match] of .link and .network files; systemd.link(5), systemd.network(5). A "!" excludes. False
// for what a selector can't hold.
bool match_section(DeviceSelector& of, Assignment const& one) {
    if (one.value.starts_with('!')) return false;
    auto const add = [&](std::vector<std::string>& to) {
        for (auto const word : words_in(one.value)) to.emplace_back(word);
    };
    if (one.key == "Name" || one.key == "OriginalName") add(of.netdevs);
    if (one.key == "MACAddress" || one.key == "PermanentMACAddress") add(of.macs);
    if (one.key == "Driver") add(of.drivers);
    constexpr std::string_view pci = "pci-";
    if (one.key == "Path" && one.value.starts_with(pci)) {
        of.pci.emplace_back(one.value.substr(pci.size()));
        return true;
    }
    constexpr std::array<std::string_view, 5> held{"Name", "OriginalName", "MACAddress",
                                                   "PermanentMACAddress", "Driver"};
    return std::ranges::find(held, one.key) != held.end();
}

Owners in_networkd(std::string_view path, std::string_view text) {
    SriovOwner owner;
    bool const of_udev = contains(path, ".link");  // also "a.link.d/b.conf"
    owner.kind = of_udev ? OwnerKind::udev : OwnerKind::networkd;
    std::string_view section;
    each_setting_line(text, [&](SettingLine const& line) {
        auto const content = trimmed(line.text);
        if (content.front() == '[') {
            section = content;
            if (section == "[SR-IOV]" && owner.line.empty()) note(owner, line, "sets VFs up");
            return;
        }
        auto const one = assignment_in(content, '=');
        if (!one) return;
        if (section == "[Match]") match_section(owner.of, *one);
        if (section == "[Link]" && one->key == "SR-IOVVirtualFunctions")
            note(owner, line, makes_vfs(one->value));
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

// A keyfile of NetworkManager, or RHEL's ifcfg-*, which NetworkManager reads as well. The
// collection kept only these lines.
Owners in_network_manager(std::string_view text) {
    SriovOwner owner;
    owner.kind = OwnerKind::network_manager;
    each_setting_line(text, [&](SettingLine const& line) {
        auto const content = trimmed(line.text);
        auto const [key, value] = assignment_in(content, '=').value_or(Assignment{content, {}});
        if (key == "id" || key == "NAME") owner.name = value;
        if (key == "interface-name" || key == "DEVICE") owner.of.netdevs = {std::string(value)};
        if (key == "mac-address") owner.of.macs = {std::string(value)};
        if (key == "total-vfs" || key == "SRIOV_TOTAL_VFS")
            note(owner, line, makes_vfs(value));
        else if (owner.line.empty() && (key == "[sriov]" || key.starts_with("SRIOV_")))
            note(owner, line, "sets VFs up");
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

// "options mlx4_core num_vfs=2,2,0"; modprobe.d(5).
Owners in_modprobe(SettingLine const& line) {
    auto const words = words_in(line.text);
    if (words.size() < 3 || words[0] != "options") return {};
    for (auto const& word : words) {
        auto const one = assignment_in(word, '=');
        bool const counts = one && (one->key == "num_vfs" || one->key == "max_vfs");
        if (!counts || one->value.find_first_of("123456789") == one->value.npos) continue;
        std::string driver(words[1]);
        std::ranges::replace(driver, '-', '_');
        auto owner = owner_at(line, OwnerKind::module, fmt::format("makes VFs, {}", word));
        owner.name = driver;
        owner.of.drivers = {driver};
        return {owner};
    }
    return {};
}

// The device in ".../ens1/device/sriov_numvfs" and the like; a shell may have escaped colons.
DeviceSelector device_in_path(std::string_view line, std::string_view file) {
    std::string text(line.substr(0, line.find(file)));
    std::erase(text, '\\');
    std::string_view path = text;
    if (auto const start = path.find_last_of(" \t\"'>=({"); start != path.npos)
        path.remove_prefix(start + 1);
    if (path.ends_with('/')) path.remove_suffix(1);
    constexpr std::string_view device = "/device";
    if (path.ends_with(device)) path.remove_suffix(device.size());
    auto const slash = path.rfind('/');
    if (slash == path.npos) return {};
    std::string const name(path.substr(slash + 1));
    if (PciAddress::parse(name)) return {{}, {}, {}, {name}, {}};
    bool const plain = !name.empty() && name.find_first_of("$%{") == name.npos;
    if (plain && contains(path, "/infiniband/")) return {{}, {}, {}, {}, {name}};
    if (plain && contains(path, "/net/")) return {{name}, {}, {}, {}, {}};
    return {};
}

// Keys of a udev rule that select the device: udev(7).
DeviceSelector device_in_rule(std::string_view line) {
    DeviceSelector of;
    while (auto const part = take_until(line, ',')) {
        auto const at = part->find("==");
        if (at == part->npos) continue;
        auto const key = trimmed(part->substr(0, at));
        std::string const value(without_quotes(trimmed(part->substr(at + 2))));
        if (key == "KERNEL" || key == "NAME" || key == "ENV{INTERFACE}") of.netdevs = {value};
        if (key == "DRIVERS" || key == "DRIVER" || key == "ENV{ID_NET_DRIVER}")
            of.drivers = {value};
        if (key == "ATTR{address}") of.macs = {value};
        if (key == "KERNELS" && PciAddress::parse(value)) of.pci = {value};
    }
    // A rule for a PCI device names it by KERNEL.
    if (of.netdevs.size() == 1 && PciAddress::parse(of.netdevs[0])) of.pci = std::move(of.netdevs);
    if (!of.pci.empty()) of.netdevs.clear();
    return of;
}

// Reading the file is not ownership.
bool writes_count(std::string_view line, std::string_view file) {
    auto const behind = line.substr(line.find(file) + file.size());
    if (behind.starts_with("}=\"")) return true;
    if (behind.starts_with("}")) return false;  // udev matches on it
    return line.substr(0, line.find(file)).find('>') != line.npos || contains(line, "tee ");
}

OwnerKind kind_of(std::string_view path) {
    if (path.ends_with(".rules")) return OwnerKind::udev;
    if (path.ends_with(".service")) return OwnerKind::unit;
    return path.starts_with("/etc/network/interfaces") ? OwnerKind::ifupdown : OwnerKind::other;
}

// A unit's program whose name shows its purpose: /usr/sbin/mlx5-sriov-create-vfs.
std::optional<SriovOwner> program_of(SettingLine const& line) {
    auto const one = assignment_in(line.text, '=');
    if (!one || !one->key.starts_with("ExecStart")) return std::nullopt;
    auto const words = words_in(one->value);
    if (words.empty() || !contains(words[0], "sriov")) return std::nullopt;
    return owner_at(line, OwnerKind::unit, fmt::format("runs {}", words[0]));
}

Owners in_lines(std::string_view path, std::string_view text) {
    Owners owners;
    std::string interface;
    auto const kind = kind_of(path);
    each_setting_line(text, [&](SettingLine const& setting) {
        auto const line = setting.text;
        auto const words = words_in(line);
        if (words.size() > 1 && words[0] == "iface") interface = words[1];
        if (auto const owner = kind == OwnerKind::unit ? program_of(setting) : std::nullopt)
            owners.push_back(*owner);
        for (auto const file : count_files) {
            if (!contains(line, file) || !writes_count(line, file)) continue;
            auto owner = owner_at(setting, kind, fmt::format("writes {}", file));
            owner.of = kind == OwnerKind::udev ? device_in_rule(line) : device_in_path(line, file);
            if (owner.of.any() && contains(line, "$IFACE")) owner.of.netdevs = {interface};
            owners.push_back(std::move(owner));
        }
    });
    return owners;
}

}  // namespace

std::optional<DeviceSelector> parse_match(std::string_view text) {
    DeviceSelector of;
    bool in_match = false, held = true;
    each_setting_line(text, [&](SettingLine const& line) {
        auto const content = trimmed(line.text);
        if (content.front() == '[') in_match = content == "[Match]";
        auto const one = in_match ? assignment_in(content, '=') : std::nullopt;
        if (one) held &= match_section(of, *one);
    });
    return held ? std::optional(of) : std::nullopt;
}

std::vector<SriovOwner> parse_sriov_owners(std::string_view path, std::string_view text) {
    if (contains(path, "/qemu/networks/")) return in_libvirt_network(text);
    if (path.ends_with("sriov_agent.ini") || path.ends_with("nova.conf")) return in_openstack(text);
    if (contains(path, "/systemd/network/")) return in_networkd(path, text);
    if (contains(path, "/system-connections/") || contains(path, "/ifcfg-"))
        return in_network_manager(text);
    if (contains(path, "/sriov-operator/"))
        return path.ends_with(".yaml") ? in_operator_config(text) : in_operator_state(text);
    if (path.ends_with(".yaml")) return in_netplan(text);
    auto owners = in_lines(path, text);
    if (contains(path, "/modprobe.d/"))
        each_setting_line(text, [&](SettingLine const& line) {
            for (auto& owner : in_modprobe(line)) owners.push_back(std::move(owner));
        });
    return owners;
}

}  // namespace vfmgr::checks
