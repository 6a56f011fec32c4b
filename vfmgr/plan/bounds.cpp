// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/bounds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "vfmgr/plan/step_subject.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t vlan_max = 4094;

tl::unexpected<Error> beyond(std::string detail) {
    return fail(Problem::forbidden, std::move(detail),
                "this host's bounds are root's: [bounds] in /etc/vfmgr/vfmgr.toml");
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
        for (auto const& [index, wanted] : step.changes) VFMGR_CHECK(settings({pf, index}, wanted));
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
    Result<void> operator()(AddVlanInterface const& step) const {
        return vlan(step.interface.vlan);
    }
    // The PF's own link is up for its VLANs, too: only an address makes the host a part of one.
    Result<void> operator()(AddAddress const& step) const { return vlan(step.interface.vlan); }
    template <class Other>
    Result<void> operator()(Other const&) const {
        return {};
    }

    Result<void> settings(VfId const& vf, VfSpec const& wanted) const {
        auto const refused = [&](std::string_view what) {
            return beyond(fmt::format("{} is not allowed for VF {}", what, to_string(vf)));
        };
        if (wanted.vlan) VFMGR_CHECK(vlan(wanted.vlan->id));
        if (wanted.trust.value_or(false) && !bounds.trust.value_or(true))
            return refused("trust on");
        if (!wanted.spoofchk.value_or(true) && !bounds.spoofchk_off.value_or(true))
            return refused("spoofchk off");
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
                                  to_string(pf), fmt::join(texts_of(*bounds.vlans), ", ")));
    }
};

PfBounds bounds_of(HostBounds const& bounds, PciAddress const& pf) {
    auto const own = bounds.pfs.find(pf);
    if (own == bounds.pfs.end()) return bounds.default_pf;
    auto of_pf = own->second;
    for_each_pf_bound([&](char const*, auto member) {
        if (!(of_pf.*member)) of_pf.*member = bounds.default_pf.*member;
    });
    return of_pf;
}

Result<void> address_within(HostBounds const& bounds, IpAddress const& address) {
    auto const has = [&](IpPrefix const& prefix) { return prefix.contains(address); };
    if (!bounds.addresses || std::ranges::any_of(*bounds.addresses, has)) return {};
    return beyond(fmt::format("{} may not be an address of this host: they lie in {}",
                              to_string(address), fmt::join(texts_of(*bounds.addresses), ", ")));
}

Result<void> holder_within(HolderBounds const& bounds, AttachExternal const& step) {
    if (!bounds.allowed)
        return fail(Problem::forbidden,
                    fmt::format("VF {} may not be attached to {}: external holders are not allowed "
                                "on this host",
                                to_string(step.vf), step.holder),
                    "root allows them: allowed = true in [bounds.external_holders] of "
                    "/etc/vfmgr/vfmgr.toml");
    auto const has = [&](UidRange const& one) {
        return one.first <= *step.uid && *step.uid <= one.last;
    };
    if (!step.uid || std::ranges::any_of(bounds.uids, has)) return {};
    return fail(Problem::forbidden,
                fmt::format("VF {} may not be given to user {}: allowed are {}", to_string(step.vf),
                            *step.uid,
                            bounds.uids.empty()
                                ? "none"
                                : fmt::format("{}", fmt::join(texts_of(bounds.uids), ", "))),
                "leave the uid out; or root allows it: uids in [bounds.external_holders] of "
                "/etc/vfmgr/vfmgr.toml");
}

// Returns the VF's settings once the plan has been done.
VfSpec settings_after(HostView const& host, Plan const& plan, VfId const& vf) {
    auto const* const now = find_vf(host, vf);
    auto settings = now ? now->settings : VfSpec{};
    for (auto const& step : plan.steps)
        if (auto const* const configure = as<ConfigureVfs>(step);
            configure && configure->pf == vf.pf)
            for (auto const& [index, wanted] : configure->changes)
                if (index == vf.index) settings = overlay(settings, wanted);
    return settings;
}

}  // namespace

Result<void> within(HostBounds const& bounds, HostView const& host, Plan const& plan) {
    for (auto const& step : plan.steps) {
        auto const pf = pf_of(step);
        if (!pf) continue;
        OnPf const judge{*pf, bounds_of(bounds, *pf)};
        if (!judge.bounds.managed.value_or(true))
            return beyond(fmt::format("{} may not be managed", to_string(*pf)));
        if (auto const* const add = as<AddAddress>(step))
            VFMGR_CHECK(address_within(bounds, add->address));
        if (auto const* const attach = as<AttachHostdev>(step))
            VFMGR_CHECK(judge.settings(attach->vf, settings_after(host, plan, attach->vf)));
        if (auto const* const mark = as<MarkHostdev>(step))
            VFMGR_CHECK(judge.settings(mark->vf, settings_after(host, plan, mark->vf)));
        if (auto const* const attach = as<AttachExternal>(step)) {
            VFMGR_CHECK(holder_within(bounds.external_holders, *attach));
            VFMGR_CHECK(judge.settings(attach->vf, settings_after(host, plan, attach->vf)));
        }
        VFMGR_CHECK(visit_step(judge, step));
    }
    return {};
}

Result<VlanRange> VlanRange::parse(std::string_view text) {
    if (auto const range = parse_digit_range(text, {.max = vlan_max}))
        return VlanRange{static_cast<std::uint16_t>(range->first),
                         static_cast<std::uint16_t>(range->last)};
    return fail(Problem::invalid_request, fmt::format("{} is no range of VLANs", quoted(text)),
                "write it as \"100-199\" or \"100\"; 0 is untagged, 4094 the highest");
}

// The last number is no user: chown() takes it for "none".
Result<UidRange> UidRange::parse(std::string_view text) {
    constexpr std::uint64_t uid_max = UINT32_MAX - 1;
    auto const range = parse_digit_range(text, {.max = uid_max});
    if (range && range->first > 0)
        return UidRange{static_cast<std::uint32_t>(range->first),
                        static_cast<std::uint32_t>(range->last)};
    return fail(Problem::invalid_request, fmt::format("{} is no range of users", quoted(text)),
                "write it as \"100000-165535\" or \"64055\"; 0, root, needs no node of its own");
}

namespace {

template <class Range>
std::string range_text(Range const& range) {
    return range.first == range.last ? std::to_string(range.first)
                                     : fmt::format("{}-{}", range.first, range.last);
}

}  // namespace

std::string to_string(UidRange const& range) {
    return range_text(range);
}

std::string to_string(VlanRange const& range) {
    return range_text(range);
}

}  // namespace vfmgr
