// SPDX-License-Identifier: Apache-2.0
// Owners of VFs whose files are YAML: netplan, and Kubernetes' SR-IOV network operator, whose state
// is JSON, which is YAML, too.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "api/types/text.hpp"
#include "vfmgr/checks/host/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t document_bytes_max = 1 << 16;  // as much as the sources keep of a file

// Returns what `find` sees in the document; nothing if it is not YAML, or if a part of it is of
// another kind than expected, for which yaml-cpp throws. It refuses by itself what is nested too
// deeply for it, and takes text with zeros for another encoding, whose lines are others.
template <class Find>
Owners in_document(std::string_view text, Find find) {
    if (text.size() > document_bytes_max || contains(text, std::string_view("\0", 1)) ||
        !valid_utf8(text))
        return {};
    try {
        return find(YAML::Load(std::string(text)));
    } catch (YAML::Exception const&) {
        return {};
    }
}

// A line of JSON may hold the whole document.
SettingLine line_of(YAML::Node const& key, std::string_view text) {
    constexpr std::size_t shown_max = 300;
    auto const above = static_cast<std::size_t>(std::max(key.Mark().line, 0));
    return {trimmed(lines_in(text).at(above)).substr(0, shown_max), above + 1};
}

DeviceSelector selector_of(YAML::Node const& match) {
    DeviceSelector of;
    for (auto const& entry : match) {
        auto const& key = entry.first.Scalar();
        if (key == "name") of.netdevs = {entry.second.Scalar()};
        if (key == "macaddress") of.macs = {entry.second.Scalar()};
        if (key == "driver") of.drivers = {entry.second.Scalar()};
    }
    return of;
}

Owners of_ethernets(YAML::Node const& ethernets, std::string_view text) {
    std::map<std::string, SriovOwner> by_device;
    std::map<std::string, DeviceSelector> matches;
    for (auto const& device : ethernets) {
        auto const& name = device.first.Scalar();
        for (auto const& entry : device.second) {
            auto const& key = entry.first.Scalar();
            auto const& value = entry.second.Scalar();
            auto const owner = [&](std::string does) {
                return owner_at(line_of(entry.first, text), OwnerKind::netplan, std::move(does));
            };
            if (key == "match") matches[name] = selector_of(entry.second);
            if (key == "virtual-function-count") by_device[name] = owner(makes_vfs(value));
            // "link:" makes a netdev a VF of another, and that one's VFs are counted by it.
            if (key == "embedded-switch-mode" || key == "link")
                by_device.try_emplace(key == "link" ? value : name, owner("sets VFs up"));
        }
    }
    Owners owners;
    for (auto& [device, owner] : by_device) {
        if (auto const match = matches.find(device); match != matches.end())
            owner.of = match->second;
        else
            owner.of.netdevs = {device};
        owners.push_back(std::move(owner));
    }
    return owners;
}

// One PF, as the operator's configuration ("numvfs") and its state ("numVfs") have it.
Owners of_operators_pf(YAML::Node const& pf, std::string_view text) {
    SriovOwner owner;
    owner.kind = OwnerKind::sriov_operator;
    std::string name;
    bool external = false;  // the operator leaves its VFs alone
    for (auto const& entry : pf) {
        auto const key = lowered(entry.first.Scalar());
        auto const& value = entry.second.Scalar();
        if (key == "name") name = value;
        if (key == "pciaddress") owner.of.pci = {value};
        if (key == "externallymanaged") external = value == "true";
        if (key == "numvfs" && parse_digits(value, {}))
            note(owner, line_of(entry.first, text), makes_vfs(value));
    }
    if (owner.line.empty() || external) return {};
    if (owner.of.pci.empty() && !name.empty()) owner.of.netdevs = {name};
    return {owner};
}

std::size_t line_number_at(std::string_view text, std::size_t at) {
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

}  // namespace

Owners in_netplan(std::string_view text) {
    auto owners = in_document(text, [&](YAML::Node const& root) {
        return of_ethernets(root["network"]["ethernets"], text);
    });
    // Somewhere else, or in a document that is not understood.
    constexpr std::string_view count = "virtual-function-count";
    if (auto const at = text.find(count); owners.empty() && at != text.npos)
        owners.push_back(
            owner_at({count, line_number_at(text, at)}, OwnerKind::netplan, "makes VFs"));
    return owners;
}

Owners in_operator_config(std::string_view text) {
    return in_document(text, [&](YAML::Node const& root) {
        Owners owners;
        for (auto const& pf : root["spec"]["interfaces"])
            std::ranges::move(of_operators_pf(pf, text), std::back_inserter(owners));
        return owners;
    });
}

Owners in_operator_state(std::string_view text) {
    return in_document(text, [&](YAML::Node const& root) { return of_operators_pf(root, text); });
}

}  // namespace vfmgr::checks
