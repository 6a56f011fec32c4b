// SPDX-License-Identifier: Apache-2.0
// Owners of VFs whose files are YAML: netplan, and Kubernetes' SR-IOV network operator, whose state
// is JSON, which is YAML, too.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "api/types/text.hpp"
#include "vfmgr/checks/host/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t document_bytes_max = 1 << 16;  // as much as the sources keep of a file

// A document's lines, and how many entries of it may still be looked at: one of n bytes has fewer
// than n, unless its aliases repeat them.
class Document {
  public:
    explicit Document(std::string_view text) : lines_(lines_in(text)), entries_left_(text.size()) {}

    void count_entry() {
        if (entries_left_ == 0) throw YAML::Exception(YAML::Mark::null_mark(), "too many aliases");
        --entries_left_;
    }
    // A line of JSON may hold the whole document.
    [[nodiscard]] SettingLine line_of(YAML::Node const& key) const {
        constexpr std::size_t shown_max = 300;
        auto const above = static_cast<std::size_t>(std::max(key.Mark().line, 0));
        return {trimmed(lines_.at(above)).substr(0, shown_max), above + 1};
    }

  private:
    std::vector<std::string_view> lines_;
    std::size_t entries_left_;
};

// Returns what `find` sees in the document. nullopt: it is not YAML, or a part of it is of an
// unexpected kind, for which yaml-cpp throws. yaml-cpp itself refuses what is nested too deeply,
// and takes text with zeros for another encoding, in which the lines are different.
template <class Find>
std::optional<Owners> in_document(std::string_view text, Find find) {
    if (text.size() > document_bytes_max || contains(text, std::string_view("\0", 1)) ||
        !valid_utf8(text))
        return std::nullopt;
    try {
        Document document(text);
        return find(YAML::Load(std::string(text)), document);
    } catch (YAML::Exception const&) {
        return std::nullopt;
    }
}

// What a document mentions that is not understood, or has the word in an unknown place.
Owners by_word(std::string_view text, std::string_view word, OwnerKind kind, std::string does) {
    auto const at = lowered(text).find(word);
    if (at == std::string::npos) return {};
    auto const above = std::ranges::count(text.substr(0, at), '\n');
    return {owner_at({text.substr(at, word.size()), static_cast<std::size_t>(above) + 1}, kind,
                     std::move(does))};
}

DeviceSelector selector_of(YAML::Node const& match, Document& document) {
    DeviceSelector of;
    for (auto const& entry : match) {
        document.count_entry();
        auto const& key = entry.first.Scalar();
        if (key == "name") of.netdevs = {entry.second.Scalar()};
        if (key == "macaddress") of.macs = {entry.second.Scalar()};
        if (key == "driver") of.drivers = {entry.second.Scalar()};
    }
    return of;
}

Owners of_ethernets(YAML::Node const& ethernets, Document& document) {
    std::map<std::string, SriovOwner> by_device;
    std::map<std::string, DeviceSelector> matches;
    for (auto const& device : ethernets) {
        auto const& name = device.first.Scalar();
        document.count_entry();
        for (auto const& entry : device.second) {
            document.count_entry();
            auto const& key = entry.first.Scalar();
            auto const& value = entry.second.Scalar();
            auto const owner = [&](std::string does) {
                return owner_at(document.line_of(entry.first), OwnerKind::netplan, std::move(does));
            };
            if (key == "match") matches[name] = selector_of(entry.second, document);
            if (key == "virtual-function-count") by_device[name] = owner(makes_vfs(value));
            // "link:" makes a netdev a VF of another one, which has as many VFs as name it.
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
Owners of_operators_pf(YAML::Node const& pf, Document& document) {
    SriovOwner owner;
    owner.kind = OwnerKind::sriov_operator;
    std::string name;
    bool external = false;  // the operator leaves its VFs alone
    document.count_entry();
    for (auto const& entry : pf) {
        document.count_entry();
        auto const key = lowered(entry.first.Scalar());
        auto const& value = entry.second.Scalar();
        if (key == "name") name = value;
        if (key == "pciaddress") owner.of.pci = {value};
        if (key == "externallymanaged") external = value == "true";
        if (key == "numvfs" && parse_digits(value, {}))
            note(owner, document.line_of(entry.first), makes_vfs(value));
    }
    if (owner.line.empty() || external) return {};
    if (owner.of.pci.empty() && !name.empty()) owner.of.netdevs = {name};
    return {owner};
}

}  // namespace

Owners in_netplan(std::string_view text) {
    auto const owners = in_document(text, [](YAML::Node const& root, Document& document) {
        return of_ethernets(root["network"]["ethernets"], document);
    });
    if (owners && !owners->empty()) return *owners;
    auto mentioned = by_word(text, "virtual-function-count", OwnerKind::netplan, "makes VFs");
    if (mentioned.empty() && !owners)
        mentioned = by_word(text, "embedded-switch-mode", OwnerKind::netplan, "sets VFs up");
    return mentioned;
}

Owners in_operator_config(std::string_view text) {
    auto const owners = in_document(text, [](YAML::Node const& root, Document& document) {
        Owners all;
        for (auto const& pf : root["spec"]["interfaces"])
            std::ranges::move(of_operators_pf(pf, document), std::back_inserter(all));
        return all;
    });
    return owners ? *owners : by_word(text, "numvfs", OwnerKind::sriov_operator, "makes VFs");
}

Owners in_operator_state(std::string_view text) {
    auto const owners = in_document(text, [](YAML::Node const& root, Document& document) {
        return of_operators_pf(root, document);
    });
    return owners ? *owners : by_word(text, "numvfs", OwnerKind::sriov_operator, "makes VFs");
}

}  // namespace vfmgr::checks
