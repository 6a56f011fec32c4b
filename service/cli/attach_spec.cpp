// SPDX-License-Identifier: Apache-2.0
#include "service/cli/attach_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "service/cli/choice.hpp"
#include "service/cli/pf_edit.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view help = "see vfctl attach --help";

Result<VfSpec> settings_of(AttachArguments const& arguments) {
    VfSpec settings;
    if (!arguments.mac.empty()) {
        VFMGR_TRY(settings.mac, MacAddress::parse(arguments.mac));
    }
    if (!arguments.vlan.empty()) {
        VFMGR_TRY(settings.vlan, parse_vlan(arguments.vlan));
    }
    if (!arguments.trust.empty()) {
        VFMGR_TRY(settings.trust, parse_on_off("--trust", arguments.trust));
    }
    if (!arguments.spoofchk.empty()) {
        VFMGR_TRY(settings.spoofchk, parse_on_off("--spoofchk", arguments.spoofchk));
    }
    if (!arguments.link_state.empty()) {
        VFMGR_TRY(settings.link_state,
                  parse_choice<LinkState>("--link-state", arguments.link_state, help));
    }
    if (!arguments.query_rss.empty()) {
        VFMGR_TRY(settings.query_rss, parse_on_off("--query-rss", arguments.query_rss));
    }
    if (!arguments.roce.empty()) {
        VFMGR_TRY(settings.roce, parse_on_off("--roce", arguments.roce));
    }
    if (!arguments.node_guid.empty()) {
        VFMGR_TRY(settings.node_guid, Guid::parse(arguments.node_guid));
    }
    if (!arguments.port_guid.empty()) {
        VFMGR_TRY(settings.port_guid, Guid::parse(arguments.port_guid));
    }
    settings.msix_vectors = arguments.msix_vectors;
    settings.min_tx_rate_mbps = arguments.min_tx_rate_mbps;
    settings.max_tx_rate_mbps = arguments.max_tx_rate_mbps;
    return settings;
}

}  // namespace

Result<Vlan> parse_vlan(std::string_view text) {
    std::vector<std::string_view> parts;
    while (parts.size() < 3) {
        auto const end = parts.size() == 2 ? text.size() : std::min(text.find(':'), text.size());
        parts.push_back(text.substr(0, end));
        if (end == text.size()) break;
        text.remove_prefix(end + 1);
    }
    VFMGR_TRY(auto const id, number("the VLAN id", parts[0], 0, 4094));
    Vlan vlan{.id = static_cast<std::uint16_t>(id)};
    if (parts.size() > 1) {
        VFMGR_TRY(auto const qos, number("the VLAN's qos", parts[1], 0, 7));
        vlan.qos = static_cast<std::uint8_t>(qos);
    }
    if (parts.size() > 2) {
        VFMGR_TRY(vlan.proto, parse_choice<VlanProtocol>("the VLAN's protocol", parts[2], help));
    }
    return vlan;
}

Result<bool> parse_on_off(std::string_view option, std::string_view text) {
    if (text == "on") return true;
    if (text == "off") return false;
    return fail(Problem::invalid_request, fmt::format("{} is on or off, not '{}'", option, text),
                "see vfctl attach --help");
}

Result<AttachmentSpec> attachment_spec(AttachArguments const& arguments, PciAddress const& pf) {
    AttachmentSpec spec;
    spec.vm = arguments.vm;
    spec.pf = pf;
    spec.vf = arguments.vf;
    if (!arguments.network.empty()) spec.network = arguments.network;
    if (!arguments.address.empty()) {
        VFMGR_TRY(spec.address, IpAddress::parse(arguments.address));
    }
    VFMGR_TRY(spec.settings, settings_of(arguments));
    spec.best_effort = arguments.best_effort;
    if (!arguments.persistence.empty()) {
        VFMGR_TRY(spec.persistence,
                  parse_choice<Persistence>("--persistence", arguments.persistence, help));
    }
    if (arguments.verify) spec.verify = VerifyMode::required;
    if (arguments.verify_timeout_seconds)
        spec.verify_timeout_seconds = *arguments.verify_timeout_seconds;
    if (!arguments.verify_profile.empty()) {
        VFMGR_TRY(spec.verify_profile,
                  parse_choice<Profile>("--verify-profile", arguments.verify_profile, help));
    }
    spec.verify_every_seconds = arguments.verify_every_seconds.value_or(0);
    return spec;
}

}  // namespace vfmgr
