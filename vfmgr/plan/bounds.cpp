// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/bounds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t vlan_max = 4094;

tl::unexpected<Error> beyond(std::string detail) {
    return fail(Problem::forbidden, std::move(detail),
                "this host's bounds are root's: [bounds] in /etc/vfmgr/vfmgr.toml");
}

std::string texts_of(auto const& values) {
    std::vector<std::string> texts;
    for (auto const& one : values) texts.push_back(to_string(one));
    return fmt::format("{}", fmt::join(texts, ", "));
}

// What is done to one PF; each overload is about the steps of one kind.
struct OnPf {
    PciAddress const& pf;
    PfBounds const bounds;

    Result<void> operator()(SetNumVfs const& step) const {
        if (step.count <= bounds.num_vfs_max.value_or(step.count)) return {};
        return beyond(fmt::format("{} VFs of {} are not allowed: {} are", step.count, to_string(pf),
                                  *bounds.num_vfs_max));
    }
    Result<void> operator()(ConfigureVfs const& step) const {
        for (auto const& change : step.changes) VFMGR_CHECK(settings(change));
        return {};
    }
    Result<void> operator()(BindVfs const& step) const {
        auto const& allowed = bounds.drivers;
        if (!step.driver || !allowed || std::ranges::find(*allowed, *step.driver) != allowed->end())
            return {};
        return beyond(fmt::format("driver {} is not allowed for VFs of {}: allowed are {}",
                                  *step.driver, to_string(pf), fmt::join(*allowed, ", ")));
    }
    Result<void> operator()(SetFirmware const&) const {
        if (bounds.firmware.value_or(true)) return {};
        return beyond(fmt::format("the firmware settings of {} may not be changed", to_string(pf)));
    }
    Result<void> operator()(SetLink const& step) const { return vlan(step.interface.vlan); }
    Result<void> operator()(AddVlanInterface const& step) const {
        return vlan(step.interface.vlan);
    }
    Result<void> operator()(AddAddress const& step) const { return vlan(step.interface.vlan); }
    template <class Other>
    Result<void> operator()(Other const&) const {
        return {};
    }

  private:
    Result<void> vlan(std::optional<std::uint16_t> id) const {
        auto const wanted = id.value_or(0);
        auto const has = [&](VlanRange const& one) {
            return one.first <= wanted && wanted <= one.last;
        };
        if (!bounds.vlans || std::ranges::any_of(*bounds.vlans, has)) return {};
        return beyond(fmt::format("VLAN {} is not allowed on {}: allowed are {}", wanted,
                                  to_string(pf), texts_of(*bounds.vlans)));
    }
    Result<void> settings(VfChange const& change) const {
        auto const refused = [&](std::string_view what) {
            return beyond(fmt::format("{} is not allowed for VF {}", what,
                                      to_string(VfId{pf, change.index})));
        };
        auto const& [index, wanted] = change;
        if (wanted.vlan) VFMGR_CHECK(vlan(wanted.vlan->id));
        if (wanted.trust.value_or(false) && !bounds.trust.value_or(true))
            return refused("trust on");
        if (!wanted.spoofchk.value_or(true) && !bounds.spoofchk_off.value_or(true))
            return refused("spoofchk off");
        return {};
    }
};

PfBounds bounds_of(HostBounds const& bounds, PciAddress const& pf) {
    auto const own = bounds.pfs.find(pf);
    if (own == bounds.pfs.end()) return bounds.default_pf;
    auto of_pf = own->second;
    auto const add = [&](auto member) {
        if (!(of_pf.*member)) of_pf.*member = bounds.default_pf.*member;
    };
    add(&PfBounds::managed);
    add(&PfBounds::num_vfs_max);
    add(&PfBounds::vlans);
    add(&PfBounds::trust);
    add(&PfBounds::spoofchk_off);
    add(&PfBounds::drivers);
    add(&PfBounds::firmware);
    return of_pf;
}

std::optional<PciAddress> pf_of(Step const& step) {
    if (auto const* const of_vm = std::get_if<HypervisorStep>(&step))
        return std::visit([](auto const& one) { return one.vf.pf; }, *of_vm);
    auto const* const of_kernel = std::get_if<KernelStep>(&step);
    if (of_kernel == nullptr) return std::nullopt;
    auto const subject = subject_of(*of_kernel);
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return pf ? std::optional(*pf) : std::nullopt;
}

Result<void> address_within(HostBounds const& bounds, IpAddress const& address) {
    auto const has = [&](IpPrefix const& prefix) { return prefix.contains(address); };
    if (!bounds.addresses || std::ranges::any_of(*bounds.addresses, has)) return {};
    return beyond(fmt::format("{} may not be an address of this host: they lie in {}",
                              to_string(address), texts_of(*bounds.addresses)));
}

Result<void> step_within(HostBounds const& bounds, Step const& step) {
    auto const pf = pf_of(step);
    if (!pf) return {};
    if (auto const* const add = as<AddAddress>(step))
        VFMGR_CHECK(address_within(bounds, add->address));
    auto const of_pf = bounds_of(bounds, *pf);
    if (!of_pf.managed.value_or(true))
        return beyond(fmt::format("{} may not be managed", to_string(*pf)));
    return visit_step(OnPf{*pf, of_pf}, step);
}

}  // namespace

Result<VlanRange> VlanRange::parse(std::string_view text) {
    auto const dash = text.find('-');
    auto const first = parse_digits(text.substr(0, dash), {.max = vlan_max});
    auto const last =
        dash == text.npos ? first : parse_digits(text.substr(dash + 1), {.max = vlan_max});
    if (first && last && *first <= *last)
        return VlanRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
    return fail(Problem::invalid_request, fmt::format("{} is no range of VLANs", quoted(text)),
                "write it as \"100-199\" or \"100\"; 0 is untagged, 4094 the highest");
}

std::string to_string(VlanRange const& range) {
    return range.first == range.last ? std::to_string(range.first)
                                     : fmt::format("{}-{}", range.first, range.last);
}

Result<void> within(HostBounds const& bounds, Plan const& plan) {
    for (auto const& step : plan.steps) VFMGR_CHECK(step_within(bounds, step));
    return {};
}

}  // namespace vfmgr
