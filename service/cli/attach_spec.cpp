// SPDX-License-Identifier: Apache-2.0
#include "service/cli/attach_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "service/cli/choice.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view help = "see vfctl attach --help";

// An option that is absent leaves `out` as it is.
template <class Parse, class Out>
Result<void> read(std::string const& text, Parse parse, Out& out) {
    if (text.empty()) return {};
    VFMGR_TRY(out, parse(text));
    return {};
}

auto on_off(std::string_view option) {
    return [option](std::string_view text) { return parse_on_off(option, text); };
}

template <class E>
auto choice(std::string_view option) {
    return [option](std::string_view text) { return parse_choice<E>(option, text, help); };
}

Result<VfSpec> settings_of(AttachArguments const& arguments) {
    VfSpec settings;
    VFMGR_CHECK(read(arguments.mac, MacAddress::parse, settings.mac));
    VFMGR_CHECK(read(arguments.vlan, parse_vlan, settings.vlan));
    VFMGR_CHECK(read(arguments.trust, on_off("--trust"), settings.trust));
    VFMGR_CHECK(read(arguments.spoofchk, on_off("--spoofchk"), settings.spoofchk));
    VFMGR_CHECK(read(arguments.link_state, choice<LinkState>("--link-state"), settings.link_state));
    VFMGR_CHECK(read(arguments.query_rss, on_off("--query-rss"), settings.query_rss));
    VFMGR_CHECK(read(arguments.roce, on_off("--roce"), settings.roce));
    VFMGR_CHECK(read(arguments.node_guid, Guid::parse, settings.node_guid));
    VFMGR_CHECK(read(arguments.port_guid, Guid::parse, settings.port_guid));
    settings.msix_vectors = arguments.msix_vectors;
    settings.min_tx_rate_mbps = arguments.min_tx_rate_mbps;
    settings.max_tx_rate_mbps = arguments.max_tx_rate_mbps;
    return settings;
}

Result<void> name_receiver(AttachmentSpec& spec, AttachArguments const& arguments) {
    spec.vm = arguments.vm;
    if (!arguments.external.empty())
        spec.holder = ExternalHolder{HolderKind::external, arguments.external, arguments.uid};
    if (spec.holder && !spec.vm.empty())
        return fail(
            Problem::invalid_request,
            fmt::format("VM {} and the holder {} can't both get it", spec.vm, spec.holder->name),
            "name the VM, or --external NAME where libvirt does not run it");
    if (!spec.holder && spec.vm.empty())
        return fail(Problem::invalid_request, "no VM is named",
                    "name one, or --external NAME where libvirt does not run it");
    if (!spec.holder && arguments.uid)
        return fail(Problem::invalid_request, "--uid is an external holder's",
                    "add --external NAME, or leave --uid out: libvirt gives QEMU what it needs");
    return {};
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

Result<AttachmentSpec> attachment_spec(AttachArguments const& arguments, AttachedVf const& vf) {
    AttachmentSpec spec;
    VFMGR_CHECK(name_receiver(spec, arguments));
    spec.pf = vf.pf;
    spec.vf = vf.index;
    if (!arguments.network.empty()) spec.network = arguments.network;
    if (!arguments.pool.empty()) spec.pool = arguments.pool;
    if (!arguments.reservation.empty()) spec.reservation = arguments.reservation;
    VFMGR_CHECK(read(arguments.near, choice<Near>("--near"), spec.near));
    VFMGR_CHECK(read(arguments.address, IpAddress::parse, spec.address));
    VFMGR_TRY(spec.settings, settings_of(arguments));
    spec.best_effort = arguments.best_effort;
    VFMGR_CHECK(
        read(arguments.persistence, choice<Persistence>("--persistence"), spec.persistence));
    VFMGR_CHECK(read(arguments.guest_address, PciAddress::parse, spec.guest_address));
    if (arguments.add_ports) spec.add_ports = true;
    if (arguments.add_vsock) spec.add_vsock = true;
    VFMGR_CHECK(
        read(arguments.guest_plane, choice<GuestTransport>("--guest-plane"), spec.guest_plane));
    if (arguments.verify) spec.verify = VerifyMode::required;
    if (arguments.verify_timeout_seconds)
        spec.verify_timeout_seconds = *arguments.verify_timeout_seconds;
    VFMGR_CHECK(
        read(arguments.verify_profile, choice<Profile>("--verify-profile"), spec.verify_profile));
    spec.verify_every_seconds = arguments.verify_every_seconds.value_or(0);
    return spec;
}

Result<NamedSettings> named_settings(AttachArguments const& arguments, std::string const& help) {
    NamedSettings named;
    VFMGR_TRY(named.set, settings_of(arguments));
    for (auto const& name : arguments.unset) {
        VFMGR_TRY(auto const attribute, parse_choice<VfAttribute>("--unset", name, help));
        if (!empty(only(named.set, attribute)))
            return fail(Problem::invalid_request, fmt::format("{} is set and unset at once", name),
                        help);
        named.unset.push_back(attribute);
    }
    return named;
}

Result<AttachmentPatch> attachment_patch(AttachArguments const& arguments) {
    constexpr auto help_of_set = "see vfctl attachment set --help";
    AttachmentPatch patch;
    VFMGR_TRY(auto named, named_settings(arguments, help_of_set));
    auto& set = patch.settings.set = std::move(named.set);
    if (set.vlan) patch.settings.vlan = VlanPatch{set.vlan->id, set.vlan->qos, set.vlan->proto};
    set.vlan.reset();
    patch.settings.removed = std::move(named.unset);
    if (!arguments.best_effort.empty()) patch.best_effort = arguments.best_effort;
    if (named_by(patch.settings).empty() && !patch.best_effort)
        return fail(Problem::invalid_request, "there is nothing to set", help_of_set);
    if (arguments.verify) patch.verify = VerifyMode::required;
    patch.verify_timeout_seconds = arguments.verify_timeout_seconds;
    VFMGR_CHECK(
        read(arguments.verify_profile, choice<Profile>("--verify-profile"), patch.verify_profile));
    patch.allow_reset = arguments.allow_reset;
    return patch;
}

}  // namespace vfmgr
