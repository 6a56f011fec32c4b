// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/sriov_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "api/types/pci_address.hpp"
#include "api/types/text.hpp"

namespace vfmgr::checks {
namespace {

using Owners = std::vector<SriovOwner>;

constexpr std::string_view owner_spaces = " \t\r";
constexpr std::array<std::string_view, 2> count_files{"sriov_numvfs", "mlx5_num_vfs"};

std::string_view bare_text(std::string_view text) {
    auto const from = text.find_first_not_of(owner_spaces);
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(owner_spaces) - from + 1);
}

std::string_view without_quotes(std::string_view text) {
    bool const quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                        text.back() == text.front();
    return quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string> owner_words(std::string_view text) {
    std::vector<std::string> words;
    for (auto rest = bare_text(text); !rest.empty(); rest = bare_text(rest)) {
        auto const end = std::min(rest.find_first_of(owner_spaces), rest.size());
        words.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end);
    }
    return words;
}

// Calls `take` with every line that is no comment.
template <class Take>
void each_setting_line(std::string_view text, Take take) {
    while (!text.empty()) {
        auto const end = std::min(text.find('\n'), text.size());
        auto const line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        auto const content = bare_text(line);
        if (!content.empty() && content.front() != '#' && content.front() != ';') take(line);
    }
}

// "key = value", without either's blanks and quotes.
struct Assignment {
    std::string_view key, value;
};
std::optional<Assignment> assignment_in(std::string_view line, char sign) {
    auto value = bare_text(line);
    auto const key = take_until(value, sign);
    if (!key) return std::nullopt;
    return Assignment{bare_text(*key), without_quotes(bare_text(value))};
}

std::string makes_vfs(std::string_view count) {
    return fmt::format("makes {} VFs", count);
}

// [Match] of .link and .network files; systemd.link(5), systemd.network(5). A "!" excludes.
void match_section(DeviceSelector& of, Assignment const& one) {
    if (one.value.starts_with('!')) return;
    auto const add = [&](std::vector<std::string>& to) {
        for (auto& word : owner_words(one.value)) to.push_back(std::move(word));
    };
    if (one.key == "Name" || one.key == "OriginalName") add(of.netdevs);
    if (one.key == "MACAddress" || one.key == "PermanentMACAddress") add(of.macs);
    if (one.key == "Driver") add(of.drivers);
    constexpr std::string_view pci = "pci-";
    if (one.key == "Path" && one.value.starts_with(pci))
        of.pci.emplace_back(one.value.substr(pci.size()));
}

Owners in_networkd(std::string_view path, std::string_view text) {
    SriovOwner owner;
    owner.kind = path.ends_with(".link") ? OwnerKind::udev : OwnerKind::networkd;
    std::string_view section;
    each_setting_line(text, [&](std::string_view line) {
        auto const content = bare_text(line);
        if (content.front() == '[') {
            section = content;
            if (section == "[SR-IOV]" && owner.line.empty()) {
                owner.does = "sets VFs up";
                owner.line = section;
            }
            return;
        }
        auto const one = assignment_in(content, '=');
        if (!one) return;
        if (section == "[Match]") match_section(owner.of, *one);
        if (section == "[Link]" && one->key == "SR-IOVVirtualFunctions") {
            owner.does = makes_vfs(one->value);
            owner.line = content;
        }
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

// A keyfile of NetworkManager, of which the collection kept these lines only.
Owners in_keyfile(std::string_view text) {
    SriovOwner owner;
    owner.kind = OwnerKind::network_manager;
    each_setting_line(text, [&](std::string_view line) {
        auto const content = bare_text(line);
        if (content == "[sriov]" && owner.line.empty()) {
            owner.does = "sets VFs up";
            owner.line = content;
        }
        auto const one = assignment_in(content, '=');
        if (!one) return;
        if (one->key == "id") owner.name = one->value;
        if (one->key == "interface-name") owner.of.netdevs = {std::string(one->value)};
        if (one->key != "total-vfs") return;
        owner.does = makes_vfs(one->value);
        owner.line = content;
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

// ifcfg-* of RHEL, which NetworkManager reads as well.
Owners in_ifcfg(std::string_view text) {
    SriovOwner owner;
    owner.kind = OwnerKind::network_manager;
    each_setting_line(text, [&](std::string_view line) {
        auto const one = assignment_in(line, '=');
        if (!one) return;
        if (one->key == "DEVICE") owner.of.netdevs = {std::string(one->value)};
        if (one->key == "NAME") owner.name = one->value;
        if (!one->key.starts_with("SRIOV_")) return;
        bool const count = one->key == "SRIOV_TOTAL_VFS";
        if (!count && !owner.line.empty()) return;
        owner.does = count ? makes_vfs(one->value) : "sets VFs up";
        owner.line = bare_text(line);
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

// One key of a YAML block with how deep it stands. Flow style ({a: b}) is not looked into.
struct YamlKey {
    std::size_t depth = 0;
    std::string_view name;
};

class Netplan {
  public:
    void take(std::string_view line) {
        auto const depth = line.find_first_not_of(' ');
        auto const content = bare_text(line.substr(0, line.find(" #")));
        auto const one = assignment_in(content, ':');
        if (!one || content.starts_with('-')) return;
        while (!path_.empty() && path_.back().depth >= depth) path_.pop_back();
        auto const ethernets = std::ranges::find(path_, "ethernets", &YamlKey::name);
        auto const above = path_.end() - ethernets;
        if (above == 2) of_device(path_.back().name, *one, content);
        if (above == 3 && path_.back().name == "match")
            match_of(path_[path_.size() - 2].name, *one);
        path_.push_back({depth, without_quotes(one->key)});
    }
    [[nodiscard]] Owners owners() {
        Owners all;
        for (auto& [device, owner] : owners_) {
            if (auto const found = matches_.find(device); found != matches_.end())
                owner.of = found->second;
            else
                owner.of.netdevs = {device};
            all.push_back(std::move(owner));
        }
        return all;
    }

  private:
    // "link:" makes a netdev a VF of another, and that one's VFs are counted by it.
    void of_device(std::string_view device, Assignment const& one, std::string_view line) {
        if (one.key == "virtual-function-count")
            owners_[std::string(device)] = {
                OwnerKind::netplan, makes_vfs(one.value), std::string(line), {}, {}};
        if (one.key == "embedded-switch-mode" || one.key == "link")
            owners_.try_emplace(
                std::string(one.key == "link" ? one.value : device),
                SriovOwner{OwnerKind::netplan, "sets VFs up", std::string(line), {}, {}});
    }
    void match_of(std::string_view device, Assignment const& one) {
        auto& of = matches_[std::string(device)];
        if (one.key == "name") of.netdevs.emplace_back(one.value);
        if (one.key == "macaddress") of.macs.emplace_back(one.value);
        if (one.key == "driver") of.drivers.emplace_back(one.value);
    }

    std::vector<YamlKey> path_;
    std::map<std::string, SriovOwner> owners_;
    std::map<std::string, DeviceSelector> matches_;
};

Owners in_netplan(std::string_view text) {
    Netplan netplan;
    each_setting_line(text, [&](std::string_view line) { netplan.take(line); });
    auto owners = netplan.owners();
    constexpr std::string_view count = "virtual-function-count";
    if (owners.empty() && text.find(count) != text.npos)
        owners.push_back({OwnerKind::netplan, "makes VFs", std::string(count), {}, {}});
    return owners;
}

// "options mlx4_core num_vfs=2,2,0"; modprobe.d(5).
Owners in_modprobe(std::string_view line) {
    auto const words = owner_words(line);
    if (words.size() < 3 || words[0] != "options") return {};
    for (auto const& word : words) {
        auto const one = assignment_in(word, '=');
        bool const counts = one && (one->key == "num_vfs" || one->key == "max_vfs");
        if (!counts || one->value.find_first_of("123456789") == one->value.npos) continue;
        auto driver = words[1];
        std::ranges::replace(driver, '-', '_');
        return {{OwnerKind::module,
                 fmt::format("makes VFs, {}", word),
                 std::string(bare_text(line)),
                 driver,
                 {{}, {}, {driver}, {}, {}}}};
    }
    return {};
}

// The device in ".../ens1/device/sriov_numvfs" and the like, where a shell may have escaped colons.
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
    if (plain && path.find("/infiniband/") != path.npos) return {{}, {}, {}, {}, {name}};
    if (plain && path.find("/net/") != path.npos) return {{name}, {}, {}, {}, {}};
    return {};
}

// Keys of a udev rule that say which device: udev(7).
DeviceSelector device_in_rule(std::string_view line) {
    DeviceSelector of;
    while (auto const part = take_until(line, ',')) {
        auto const at = part->find("==");
        if (at == part->npos) continue;
        auto const key = bare_text(part->substr(0, at));
        std::string const value(without_quotes(bare_text(part->substr(at + 2))));
        if (key == "KERNEL" || key == "NAME" || key == "ENV{INTERFACE}") of.netdevs = {value};
        if (key == "DRIVERS" || key == "DRIVER" || key == "ENV{ID_NET_DRIVER}")
            of.drivers = {value};
        if (key == "ATTR{address}") of.macs = {value};
        if (key == "KERNELS" && PciAddress::parse(value)) of.pci = {value};
    }
    // A PCI device's rule names it by KERNEL.
    if (of.netdevs.size() == 1 && PciAddress::parse(of.netdevs[0])) of.pci = std::move(of.netdevs);
    if (!of.pci.empty()) of.netdevs.clear();
    return of;
}

// Reading the file is not owning it.
bool writes_count(std::string_view line, std::string_view file) {
    auto const behind = line.substr(line.find(file) + file.size());
    if (behind.starts_with("}=\"")) return true;
    if (behind.starts_with("}")) return false;  // udev looks at it
    return line.substr(0, line.find(file)).find('>') != line.npos || line.find("tee ") != line.npos;
}

OwnerKind kind_of(std::string_view path) {
    if (path.ends_with(".rules")) return OwnerKind::udev;
    if (path.ends_with(".service")) return OwnerKind::unit;
    return path.starts_with("/etc/network/interfaces") ? OwnerKind::ifupdown : OwnerKind::other;
}

// A unit's program that says by its name what it is for: /usr/sbin/mlx5-sriov-create-vfs.
std::optional<SriovOwner> program_of(std::string_view line) {
    auto const one = assignment_in(line, '=');
    if (!one || !one->key.starts_with("ExecStart")) return std::nullopt;
    auto const words = owner_words(one->value);
    if (words.empty() || words[0].find("sriov") == std::string::npos) return std::nullopt;
    return SriovOwner{
        OwnerKind::unit, fmt::format("runs {}", words[0]), std::string(bare_text(line)), {}, {}};
}

Owners in_lines(std::string_view path, std::string_view text) {
    Owners owners;
    std::string interface;
    auto const kind = kind_of(path);
    each_setting_line(text, [&](std::string_view line) {
        auto const words = owner_words(line);
        if (words.size() > 1 && words[0] == "iface") interface = words[1];
        if (auto const owner = kind == OwnerKind::unit ? program_of(line) : std::nullopt)
            owners.push_back(*owner);
        for (auto const file : count_files) {
            if (line.find(file) == line.npos || !writes_count(line, file)) continue;
            SriovOwner owner{
                kind, fmt::format("writes {}", file), std::string(bare_text(line)), {}, {}};
            owner.of = kind == OwnerKind::udev ? device_in_rule(line) : device_in_path(line, file);
            if (owner.of.any() && line.find("$IFACE") != line.npos) owner.of.netdevs = {interface};
            owners.push_back(std::move(owner));
        }
    });
    return owners;
}

}  // namespace

bool DeviceSelector::any() const {
    return netdevs.empty() && macs.empty() && drivers.empty() && pci.empty() && ibdevs.empty();
}

std::vector<SriovOwner> parse_sriov_owners(std::string_view path, std::string_view text) {
    if (path.ends_with(".link") || path.ends_with(".network")) return in_networkd(path, text);
    if (path.find("/system-connections/") != path.npos) return in_keyfile(text);
    if (path.find("/ifcfg-") != path.npos) return in_ifcfg(text);
    if (path.ends_with(".yaml")) return in_netplan(text);
    auto owners = in_lines(path, text);
    if (path.find("/modprobe.d/") != path.npos)
        each_setting_line(text, [&](std::string_view line) {
            for (auto& owner : in_modprobe(line)) owners.push_back(std::move(owner));
        });
    return owners;
}

}  // namespace vfmgr::checks
