// SPDX-License-Identifier: Apache-2.0
// Owners of VFs whose files are YAML or JSON: netplan, and Kubernetes' SR-IOV network operator.
#include <map>
#include <nlohmann/json.hpp>

#include "api/types/addresses.hpp"
#include "vfmgr/machine/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

std::size_t line_number_at(std::string_view text, std::size_t at) {
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

// One key of a YAML block with its depth. Flow style ({a: b}) is not parsed.
struct YamlKey {
    std::size_t depth = 0;
    std::string_view name;
};

class Netplan {
  public:
    void take(SettingLine line) {
        auto const depth = line.text.find_first_not_of(' ');
        line.text = line.text.substr(0, line.text.find(" #"));
        auto const content = trimmed(line.text);
        auto const one = assignment_in(content, ':');
        if (!one || content.starts_with('-')) return;
        while (!path_.empty() && path_.back().depth >= depth) path_.pop_back();
        auto const ethernets = std::ranges::find(path_, "ethernets", &YamlKey::name);
        auto const above = path_.end() - ethernets;
        if (above == 2) of_device(path_.back().name, *one, line);
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
    void of_device(std::string_view device, Assignment const& one, SettingLine const& line) {
        if (one.key == "virtual-function-count")
            owners_[std::string(device)] = owner_at(line, OwnerKind::netplan, makes_vfs(one.value));
        if (one.key == "embedded-switch-mode" || one.key == "link")
            owners_.try_emplace(std::string(one.key == "link" ? one.value : device),
                                owner_at(line, OwnerKind::netplan, "sets VFs up"));
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

// One PF, its keys in any order: the address may follow the count.
struct OperatorPf {
    std::string pci, name;
    SriovOwner owner;
    bool external = false;  // the operator leaves its VFs alone

    void take(Assignment const& one, SettingLine const& line) {
        if (one.key == "pciaddress") pci = one.value;
        if (one.key == "name") name = one.value;
        if (one.key == "numvfs") note(owner, line, makes_vfs(one.value));
        if (one.key == "externallymanaged") external = one.value == "true";
    }
    void end(Owners& owners) {
        if (!owner.line.empty() && !external) {
            owner.kind = OwnerKind::sriov_operator;
            if (!pci.empty())
                owner.of.pci = {pci};
            else if (!name.empty())
                owner.of.netdevs = {name};
            owners.push_back(std::move(owner));
        }
        *this = {};
    }
};

// sriov-interface-config.yaml, which the operator's unit applies at boot. Its list of interfaces
// contains lists of VF groups, at a greater depth.
Owners in_operator_config(std::string_view text) {
    Owners owners;
    OperatorPf pf;
    std::optional<std::size_t> key, list;  // depth of "interfaces:", and of its list
    each_setting_line(text, [&](SettingLine const& line) {
        auto const depth = line.text.find_first_not_of(' ');
        auto content = trimmed(line.text);
        bool const begins = content.starts_with('-');
        if (begins) content = trimmed(content.substr(1));
        auto const one = assignment_in(content, ':');
        if (!one) return;
        if (!begins && (!key || depth <= *key)) {
            pf.end(owners);
            list.reset();
            key = one->key == "interfaces" ? std::optional(depth) : std::nullopt;
            return;
        }
        if (!key) return;
        if (begins && !list) list = depth;
        if (begins && depth == list) pf.end(owners);
        if (list && depth == (begins ? *list : *list + 2)) pf.take(*one, line);
    });
    pf.end(owners);
    return owners;
}

// pci/ADDRESS: the state that the operator last applied to a PF, and applies again.
Owners in_operator_state(std::string_view text) {
    auto const state = nlohmann::json::parse(text, nullptr, false);
    if (!state.is_object()) return {};
    auto const count = state.find("numVfs");
    auto const external = state.find("externallyManaged");
    constexpr std::string_view key = "\"numVfs\"";
    auto const at = text.find(key);
    if (count == state.end() || !count->is_number_unsigned() || at == text.npos) return {};
    if (external != state.end() && *external == true) return {};
    auto owner = owner_at({key, line_number_at(text, at)}, OwnerKind::sriov_operator,
                          makes_vfs(count->dump()));
    auto const pci = state.find("pciAddress");
    if (pci != state.end() && pci->is_string()) owner.of.pci = {pci->get<std::string>()};
    return {owner};
}

}  // namespace

Owners in_netplan(std::string_view text) {
    Netplan netplan;
    each_setting_line(text, [&](SettingLine const& line) { netplan.take(line); });
    auto owners = netplan.owners();
    constexpr std::string_view count = "virtual-function-count";
    if (auto const at = text.find(count); owners.empty() && at != text.npos)
        owners.push_back(
            owner_at({count, line_number_at(text, at)}, OwnerKind::netplan, "makes VFs"));
    return owners;
}

Owners in_operator_files(std::string_view path, std::string_view text) {
    return path.ends_with(".yaml") ? in_operator_config(text) : in_operator_state(text);
}

}  // namespace vfmgr::checks
