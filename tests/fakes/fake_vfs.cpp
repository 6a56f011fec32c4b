// SPDX-License-Identifier: Apache-2.0
// Effects of steps on PFs and VFs: sriov_numvfs, rtnetlink attributes, driver binding, FLR.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "tests/fakes/effects.hpp"

namespace vfmgr {

namespace {

Result<void> nobody_holds(VfState const& vf, PciAddress const& pf) {
    if (vf.holders.empty()) return {};
    auto const& holder = vf.holders.front();
    return fail(Problem::vf_in_use,
                fmt::format("VF {} of {} is held open by {} (pid {})", vf.index, to_string(pf),
                            holder.comm, holder.pid),
                "stop that process or detach the VF from its VM");
}

// One attribute, in its own netlink call.
struct Attribute {
    std::string_view member;
    bool expected;  // the spec has it and it differs from the reported value
    void (*apply)(VfState&, VfSpec const&);
};

template <auto Member>
Attribute attribute(std::string_view name, VfState const& vf, VfSpec const& spec) {
    return {
        name, (spec.*Member).has_value() && spec.*Member != vf.settings.*Member,
        [](VfState& state, VfSpec const& expected) { state.settings.*Member = expected.*Member; }};
}

// In the kernel's own order (vfmgr/kernel/KERNEL.md#setting-vfs).
std::array<Attribute, 12> attributes(VfState const& vf, VfSpec const& spec) {
    return {attribute<&VfSpec::mac>("mac", vf, spec),
            attribute<&VfSpec::vlan>("vlan", vf, spec),
            attribute<&VfSpec::min_tx_rate_mbps>("min_tx_rate_mbps", vf, spec),
            attribute<&VfSpec::max_tx_rate_mbps>("max_tx_rate_mbps", vf, spec),
            attribute<&VfSpec::spoofchk>("spoofchk", vf, spec),
            attribute<&VfSpec::link_state>("link_state", vf, spec),
            attribute<&VfSpec::query_rss>("query_rss", vf, spec),
            attribute<&VfSpec::trust>("trust", vf, spec),
            attribute<&VfSpec::node_guid>("node_guid", vf, spec),
            attribute<&VfSpec::port_guid>("port_guid", vf, spec),
            attribute<&VfSpec::msix_vectors>("msix_vectors", vf, spec),
            attribute<&VfSpec::roce>("roce", vf, spec)};
}

VfSpec guids_of(VfSpec const& settings) {
    VfSpec guids;
    guids.node_guid = settings.node_guid;
    guids.port_guid = settings.port_guid;
    return guids;
}

bool contains(std::vector<std::string> const& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

VfState new_vf(DriverModel const& model, PciAddress const& pf, std::uint16_t index) {
    VfState vf;
    vf.index = index;
    vf.pci = vf_address(model, pf, index);
    vf.iommu_group =
        100U + (unsigned{vf.pci.bus} << 8 | unsigned{vf.pci.device} << 3 | vf.pci.function);
    vf.settings = model.new_vf;
    return vf;
}

}  // namespace

Result<PfState*> FakeKernel::Effects::pf(PciAddress const& address) const {
    auto const found = host.pfs.find(address);
    if (found != host.pfs.end()) return &found->second;
    return refused(fmt::format("there is no PF {}", to_string(address)), "open", ENODEV);
}

Result<VfState*> FakeKernel::Effects::vf(VfId const& id) const {
    VFMGR_TRY(auto* const owner, pf(id.pf));
    auto const found = std::ranges::find(owner->vfs, id.index, &VfState::index);
    if (found != owner->vfs.end()) return &*found;
    return refused(fmt::format("{} has no VF {}", to_string(id.pf), id.index), "readlink virtfn",
                   ENOENT);
}

Result<Observed> FakeKernel::Effects::operator()(SetNumVfs const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.pf));
    if (owner->info.num_vfs == step.count) return Observed{};
    // The writing process checks this: the kernel protects nothing
    // (vfmgr/kernel/KERNEL.md#vfs-in-use).
    for (auto const& vf : owner->vfs) VFMGR_CHECK(nobody_holds(vf, step.pf));
    if (step.count > owner->info.total_vfs)
        return refused(fmt::format("{} allows {} VFs, {} were requested", to_string(step.pf),
                                   owner->info.total_vfs, step.count),
                       "write sriov_numvfs", ERANGE);
    if (model.makes_vfs_only_when_up && !owner->info.up)
        return fail(
            Problem::kernel_refused,
            fmt::format("{} VFs were requested on {}, {} appeared", step.count, to_string(step.pf),
                        owner->vfs.size()),
            "see the kernel's log for the driver's reason (journalctl -k), or request fewer VFs");
    owner->vfs.clear();
    owner->reset_methods.clear();
    owner->info.num_vfs = 0;
    if (extent == Extent::half) {
        owner->drivers_autoprobe = false;
        return Observed{};
    }
    for (std::uint16_t index = 0; index < step.count; ++index) {
        owner->vfs.push_back(new_vf(model, step.pf, index));
        owner->reset_methods.push_back({index, "flr bus"});
        overrides.erase(owner->vfs.back().pci);
        auto& settings = owner->vfs.back().settings;
        if (auto const kept = guids.find({step.pf, index}); kept != guids.end())
            settings = overlay(settings, kept->second);
    }
    owner->info.num_vfs = step.count;
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(ConfigureVfs const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.pf));
    Observed observed;
    for (auto const& change : step.changes) {
        VFMGR_TRY(auto* const target, vf({step.pf, change.index}));
        for (auto const& [member, expected, apply] : attributes(*target, change.settings)) {
            if (!expected) continue;
            auto error = refusal(model, *owner, member, change.settings);
            auto settings = change.settings;
            if (error == EINVAL && member == "mac" && settings.mac->zero()) {
                settings.mac = mac_for_none;
                error = refusal(model, *owner, member, settings);
            }
            if (!error) {
                apply(*target, settings);
                if (resets_vf(model, member)) ++driver_resets[{step.pf, change.index}];
                if (model.keeps_guids && member.ends_with("_guid"))
                    guids[{step.pf, change.index}] = guids_of(target->settings);
                if (extent == Extent::half) return observed;
                continue;
            }
            auto const detail = fmt::format("{} refuses {} of VF {} of {}", owner->info.driver,
                                            member, change.index, to_string(step.pf));
            // Earlier attributes stay applied: the kernel's own message is not atomic either.
            if (!contains(step.best_effort, member))
                return refused(detail, fmt::format("RTM_SETLINK {}", member), *error);
            observed.remarks.push_back(fmt::format("{}: {}", detail, errno_name(*error)));
        }
    }
    return observed;
}

// Half: the last VF lost its driver and got none, though its driver_override names one.
Result<Observed> FakeKernel::Effects::operator()(BindVfs const& step) const {
    std::vector<VfState*> changing;
    for (auto const index : step.vfs) {
        VFMGR_TRY(auto* const target, vf({step.pf, index}));
        if (target->driver == step.driver) continue;
        if (target->driver == "vfio-pci") VFMGR_CHECK(nobody_holds(*target, step.pf));
        changing.push_back(target);
    }
    for (auto* const target : changing) {
        if (step.driver) overrides[target->pci] = *step.driver;
        target->driver.reset();
        target->ifname.reset();
        target->vfio.reset();  // and what they were set to, is gone with the nodes
        if (extent == Extent::half && target == changing.back()) break;
        auto const bound = step.driver ? bind(step.pf, *target, *step.driver) : Result<void>{};
        overrides.erase(target->pci);
        VFMGR_CHECK(bound);
    }
    return Observed{};
}

Result<void> FakeKernel::Effects::bind(PciAddress const& pf_address, VfState& target,
                                       std::string const& driver) const {
    auto const what =
        fmt::format("VF {} of {} does not bind to {}", target.index, to_string(pf_address), driver);
    // drivers_probe reports success when nothing was bound: only the driver link shows it
    // (vfmgr/kernel/KERNEL.md#driver-binding).
    if (driver != "vfio-pci" && driver != model.vf_driver)
        return refused(what, "readlink driver", ENOENT);
    if (driver == "vfio-pci" && !target.iommu_group)
        return refused(what, "readlink driver", ENOENT);
    target.driver = driver;
    if (driver == "vfio-pci")
        target.vfio = VfioPaths{fmt::format("/dev/vfio/{}", *target.iommu_group), {}, 0};
    if (driver == model.vf_driver) {
        VFMGR_TRY(auto* const owner, pf(pf_address));
        target.ifname = fmt::format("{}v{}", owner->info.ifname, target.index);
    }
    return {};
}

Result<Observed> FakeKernel::Effects::operator()(ResetVf const& step) const {
    VFMGR_TRY(auto* const target, vf(step.vf));
    VFMGR_CHECK(nobody_holds(*target, step.vf.pf));
    if (extent == Extent::half) {
        VFMGR_TRY(auto* const owner, pf(step.vf.pf));
        for (auto& one : owner->reset_methods)
            if (one.index == step.vf.index) one.methods = "flr";
        return Observed{};
    }
    ++resets[step.vf];
    auto const counted = counters.extract(step.vf);
    return Observed{{}, counted ? std::optional(counted.mapped()) : std::nullopt};
}

// The node is one file: a part of the step is all of it, or nothing.
FakeKernel::Effects::Outcome FakeKernel::Effects::operator()(AttachExternal const& step) const {
    VFMGR_TRY(auto* const target, vf(step.vf));
    if (target->driver != "vfio-pci")
        return fail(
            Problem::conflict,
            fmt::format("VF {} of {} is not bound to VFIO", step.vf.index, to_string(step.vf.pf)),
            "attach it again: its driver changed meanwhile");
    VFMGR_CHECK(nobody_holds(*target, step.vf.pf));
    if (step.uid && target->vfio && extent == Extent::whole) target->vfio->owner = *step.uid;
    return Observed{};
}

// Half: the nodes have their owner, and the holders were not looked for.
FakeKernel::Effects::Outcome FakeKernel::Effects::operator()(DetachExternal const& step) const {
    VFMGR_TRY(auto* const target, vf(step.vf));
    if (step.owner && target->vfio) target->vfio->owner = *step.owner;
    if (extent == Extent::whole) VFMGR_CHECK(nobody_holds(*target, step.vf.pf));
    return Observed{};
}

FakeKernel::Effects::Outcome FakeKernel::Effects::operator()(SetPciValues const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.pf));
    if (step.drivers_autoprobe) owner->drivers_autoprobe = step.drivers_autoprobe;
    for (auto const index : step.no_override)
        if (auto const found = vf({step.pf, index})) overrides.erase((*found)->pci);
    for (auto const& expected : step.reset_methods)
        for (auto& one : owner->reset_methods)
            if (one.index == expected.index) one.methods = expected.methods;
    return Observed{};
}

// The tool sets one parameter after the other; none takes effect before the card's reset.
FakeKernel::Effects::Outcome FakeKernel::Effects::operator()(SetFirmware const& step) const {
    auto const card = std::ranges::find_if(cards, [&](FirmwareCard const& each) {
        return std::ranges::find(each.functions, step.pf) != each.functions.end();
    });
    if (card == cards.end() || !card->next)
        return refused("there is no such card", "query", ENODEV);
    bool first = true;
    for_each_firmware_setting([&](char const*, auto member) {
        if (!(step.settings.*member) || (extent == Extent::half && !first)) return;
        (*card->next).*member = step.settings.*member;
        first = false;
    });
    return Observed{};
}

}  // namespace vfmgr
