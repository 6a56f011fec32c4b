// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/kernel/vf_settings.hpp"

namespace vfmgr {
namespace {

constexpr auto refused_when_equal = quirks::affected_by(quirks::Effect::refuses_equal);

template <class T>
std::string value_text(T const& value) {
    if constexpr (std::is_same_v<T, bool>)
        return value ? "on" : "off";
    else if constexpr (std::is_enum_v<T>)
        return std::string(enum_name(value));
    else if constexpr (std::is_integral_v<T>)
        return std::to_string(value);
    else
        return to_string(value);
}

std::string value_text(Vlan const& vlan) {
    auto text = std::to_string(vlan.id);
    if (vlan.qos != 0) text += fmt::format(" qos {}", vlan.qos);
    if (vlan.proto != VlanProtocol::dot1q) text += fmt::format(" proto {}", enum_name(vlan.proto));
    return text;
}

}  // namespace

bool holds(VfSpec const& desired, VfSpec const& reported, VfAttribute attribute) {
    if (attribute == VfAttribute::mac) return mac_holds(desired, reported);
    // 0 requests the driver's own number, whatever it is.
    if (attribute == VfAttribute::msix_vectors && desired.msix_vectors == 0)
        return reported.msix_vectors.has_value();
    bool same = false;
    for_each_member([&](VfAttribute each, auto member) {
        if (each == attribute)
            same = (reported.*member).has_value() && reported.*member == desired.*member;
    });
    return same;
}

VfSpec to_write(VfSpec const& desired, VfSpec const& reported) {
    if (!depends_on_report(desired)) return desired;
    auto write = desired;
    for_each_member([&](VfAttribute each, auto member) {
        if ((refused_when_equal & quirks::bit(each)) != 0 && holds(desired, reported, each))
            (write.*member).reset();
    });
    // A MAC that already holds is written again: the report does not show whether the PF or the
    // guest set it, and only a MAC set by the PF can't be changed by the guest. A zero MAC needs no
    // such protection.
    if (desired.mac && desired.mac->zero() && mac_holds(desired, reported)) write.mac.reset();
    if (write.min_tx_rate_mbps && !write.max_tx_rate_mbps)
        write.max_tx_rate_mbps = reported.max_tx_rate_mbps.value_or(0);
    return write;
}

bool depends_on_report(VfSpec const& desired) {
    return quirks::has_any(desired, refused_when_equal) || (desired.mac && desired.mac->zero());
}

std::vector<VfAttribute> attributes_of(VfSpec const& settings) {
    std::vector<VfAttribute> attributes;
    for_each_member([&](VfAttribute each, auto member) {
        if (settings.*member) attributes.push_back(each);
    });
    return attributes;
}

std::string setting_text(VfSpec const& settings, VfAttribute attribute) {
    auto const name = enum_name(attribute);
    std::string text;
    for_each_member([&](VfAttribute each, auto member) {
        auto const& value = settings.*member;
        if (each == attribute)
            text =
                value ? fmt::format("{} {}", name, value_text(*value)) : fmt::format("no {}", name);
    });
    return text;
}

}  // namespace vfmgr
