// SPDX-License-Identifier: Apache-2.0
// Owners that attach VFs to VMs themselves: libvirt's networks of VFs, OpenStack's agents.
#include <nlohmann/json.hpp>

#include "api/types/text.hpp"
#include "vfmgr/checks/host/sriov_owner_lines.hpp"

namespace vfmgr::checks {
namespace {

// <pf dev='ens1f0'/>: an attribute's value, in either kind of quotes.
std::string_view attribute_in(std::string_view element, std::string_view name) {
    auto const at = element.find(fmt::format(" {}=", name));
    if (at == element.npos) return {};
    auto value = element.substr(at + name.size() + 2);
    if (value.empty() || (value.front() != '\'' && value.front() != '"')) return {};
    auto const quote = value.front();
    value.remove_prefix(1);
    return take_until(value, quote).value_or("");
}

// domain='0x0000' bus='0x3b' slot='0x00' function='0x2'.
Result<PciAddress> address_in(std::string_view element) {
    auto const digits = [&](std::string_view name) {
        auto const value = attribute_in(element, name);
        return value.starts_with("0x") ? value.substr(2) : value;
    };
    auto const domain = digits("domain");
    return PciAddress::parse(fmt::format("{:0>4}:{:0>2}:{:0>2}.{}", domain, digits("bus"),
                                         digits("slot"), digits("function")));
}

void take_names(nlohmann::json const& spec, DeviceSelector& of) {
    if (!spec.is_object()) return;
    if (auto const name = spec.find("devname"); name != spec.end() && name->is_string())
        of.netdevs.push_back(name->get<std::string>());
    if (auto const address = spec.find("address"); address != spec.end() && address->is_string()) {
        auto text = address->get<std::string>();
        // nova fills in what is left out: "*:0a:00.*", "0a:00.1".
        if (std::ranges::count(text, ':') == 1) text.insert(0, "*:");
        of.pci.push_back(std::move(text));
    }
}

}  // namespace

Owners in_libvirt_network(std::string_view text) {
    SriovOwner owner;
    owner.kind = OwnerKind::libvirt_network;
    each_line(text, [&](SettingLine const& line) {
        auto const element = trimmed(line.text);
        if (element.starts_with("<name>") && owner.name.empty()) {
            auto name = element.substr(std::string_view("<name>").size());
            owner.name = take_until(name, '<').value_or("");
        }
        if (element.starts_with("<forward ") && attribute_in(element, "mode") == "hostdev")
            note(owner, line, "attaches VFs to VMs");
        if (owner.line.empty()) return;
        if (element.starts_with("<pf ") && !attribute_in(element, "dev").empty())
            owner.of.netdevs.emplace_back(attribute_in(element, "dev"));
        if (element.starts_with("<address "))
            if (auto const address = address_in(element))
                owner.of.pci.push_back(to_string(*address));
    });
    return owner.line.empty() ? Owners() : Owners{owner};
}

Owners in_openstack(std::string_view text) {
    Owners owners;
    each_line(text, [&](SettingLine const& line) {
        auto value = trimmed(line.text);
        auto const key = trimmed(take_until(value, '=').value_or(""));
        value = trimmed(value);
        if (value.empty()) return;
        if (key == "physical_device_mappings") {
            // "physnet2:ens1f0,physnet2:ens1f1".
            auto owner = owner_at(line, OwnerKind::openstack, "lets neutron's agent set VFs up");
            for (auto const pair : words_in(value, ", "))
                if (auto const colon = pair.find(':'); colon != pair.npos)
                    owner.of.netdevs.emplace_back(pair.substr(colon + 1));
            owners.push_back(std::move(owner));
        }
        if (key == "device_spec" || key == "passthrough_whitelist") {
            auto owner = owner_at(line, OwnerKind::openstack, "lets nova attach VFs to VMs");
            auto const specs = nlohmann::json::parse(value, nullptr, false);
            if (specs.is_array())
                for (auto const& one : specs) take_names(one, owner.of);
            else
                take_names(specs, owner.of);
            owners.push_back(std::move(owner));
        }
    });
    return owners;
}

}  // namespace vfmgr::checks
