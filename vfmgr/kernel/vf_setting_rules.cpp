// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "vfmgr/kernel/vf_settings.hpp"

namespace vfmgr {
namespace {

template <class T>
bool says(std::optional<T> const& reported, std::optional<T> const& wanted) {
    return reported.has_value() && reported == wanted;
}

bool mac_holds(VfSpec const& wanted, VfSpec const& reported) {
    if (!wanted.mac || !reported.mac) return false;
    return *reported.mac == *wanted.mac || (wanted.mac->zero() && *reported.mac == stand_in_mac);
}

std::string value_text(bool on) {
    return on ? "on" : "off";
}
std::string value_text(std::uint32_t number) {
    return std::to_string(number);
}
std::string value_text(LinkState state) {
    return std::string(enum_name(state));
}
std::string value_text(MacAddress const& mac) {
    return to_string(mac);
}
std::string value_text(Guid const& guid) {
    return to_string(guid);
}

std::string value_text(Vlan const& vlan) {
    auto text = std::to_string(vlan.id);
    if (vlan.qos != 0) text += fmt::format(" qos {}", vlan.qos);
    if (vlan.proto != VlanProtocol::dot1q) text += fmt::format(" proto {}", enum_name(vlan.proto));
    return text;
}

}  // namespace

bool holds(VfSpec const& wanted, VfSpec const& reported, VfAttribute attribute) {
    switch (attribute) {
        case VfAttribute::mac:
            return mac_holds(wanted, reported);
        case VfAttribute::vlan:
            return says(reported.vlan, wanted.vlan);
        case VfAttribute::max_tx_rate:
            return says(reported.max_tx_rate_mbps, wanted.max_tx_rate_mbps);
        case VfAttribute::min_tx_rate:
            return says(reported.min_tx_rate_mbps, wanted.min_tx_rate_mbps);
        case VfAttribute::spoofchk:
            return says(reported.spoofchk, wanted.spoofchk);
        case VfAttribute::link_state:
            return says(reported.link_state, wanted.link_state);
        case VfAttribute::trust:
            return says(reported.trust, wanted.trust);
        case VfAttribute::node_guid:
            return says(reported.node_guid, wanted.node_guid);
        case VfAttribute::port_guid:
            return says(reported.port_guid, wanted.port_guid);
    }
    return false;
}

VfSpec to_write(VfSpec const& wanted, VfSpec const& reported) {
    auto write = wanted;
    if (holds(wanted, reported, VfAttribute::link_state)) write.link_state.reset();
    if (holds(wanted, reported, VfAttribute::max_tx_rate)) write.max_tx_rate_mbps.reset();
    if (holds(wanted, reported, VfAttribute::min_tx_rate)) write.min_tx_rate_mbps.reset();
    // A MAC that holds is written again: the report does not say whether the PF or the guest set
    // it, and only one that the PF set keeps the guest from changing it. A zero one has nothing to
    // keep.
    if (wanted.mac && wanted.mac->zero() && mac_holds(wanted, reported)) write.mac.reset();
    if (write.min_tx_rate_mbps && !write.max_tx_rate_mbps)
        write.max_tx_rate_mbps = reported.max_tx_rate_mbps.value_or(0);
    return write;
}

bool depends_on_report(VfSpec const& wanted) {
    return wanted.link_state || wanted.max_tx_rate_mbps || wanted.min_tx_rate_mbps ||
           (wanted.mac && wanted.mac->zero());
}

std::array<VfSpec, 3> messages_of(VfSpec const& settings) {
    return {without_guids(settings), only(settings, VfAttribute::node_guid),
            only(settings, VfAttribute::port_guid)};
}

std::vector<VfAttribute> attributes_of(VfSpec const& settings) {
    std::vector<VfAttribute> attributes;
    for (auto const& [attribute, name] : enum_names<VfAttribute>)
        if (!empty(only(settings, attribute))) attributes.push_back(attribute);
    return attributes;
}

std::string setting_text(VfSpec const& settings, VfAttribute attribute) {
    auto const text = [attribute](auto const& value) {
        auto const name = enum_name(attribute);
        return value ? fmt::format("{} {}", name, value_text(*value)) : fmt::format("no {}", name);
    };
    switch (attribute) {
        case VfAttribute::mac:
            return text(settings.mac);
        case VfAttribute::vlan:
            return text(settings.vlan);
        case VfAttribute::max_tx_rate:
            return text(settings.max_tx_rate_mbps);
        case VfAttribute::min_tx_rate:
            return text(settings.min_tx_rate_mbps);
        case VfAttribute::spoofchk:
            return text(settings.spoofchk);
        case VfAttribute::link_state:
            return text(settings.link_state);
        case VfAttribute::trust:
            return text(settings.trust);
        case VfAttribute::node_guid:
            return text(settings.node_guid);
        case VfAttribute::port_guid:
            return text(settings.port_guid);
    }
    return {};
}

}  // namespace vfmgr
