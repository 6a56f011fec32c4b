// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/free_vfs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/choose.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view no_vm;

// The VM of one in quarantine may still use it.
bool some_vm_has(DesiredState const& desired, VfId const& vf) {
    return desired.quarantine.contains(vf) ||
           std::ranges::any_of(desired.attachments,
                               [&](auto const& one) { return one.second.vf == vf; });
}

// Returns what the stored spec gives this VF.
VfSpec stored_of(DesiredState const& desired, VfId const& vf) {
    auto const stored = desired.pfs.find(vf.pf);
    if (stored == desired.pfs.end()) return {};
    auto const& given = stored->second.spec.free_vfs;
    auto const entry = std::ranges::find(given, vf.index, &FreeVf::index);
    return entry == given.end() ? VfSpec{} : entry->settings;
}

// Returns what the spec in force gives this VF: it was written when the spec came into force.
VfSpec written_before(DesiredState const& desired, VfId const& vf) {
    auto const managed = desired.pfs.find(vf.pf);
    if (managed == desired.pfs.end() || managed->second.spec.mode == PfMode::observe) return {};
    return stored_of(desired, vf);
}

// Returns what the driver reports to differ, and what it does not report and nobody wrote yet.
VfSpec still_to_write(VfSpec const& wanted, VfSpec const& now, VfSpec const& written) {
    auto lacking = differing(wanted, now);
    for_each_member([&](VfAttribute, auto member) {
        if (!(now.*member) && written.*member == lacking.*member) (lacking.*member).reset();
    });
    return lacking;
}

}  // namespace

std::vector<VfChange> lacking_on_free(DesiredState const& desired, PfState const& pf,
                                      PfSpec const& spec) {
    std::vector<VfChange> all;
    for (auto const& [index, settings] : spec.free_vfs) {
        VfId const id{pf.info.pci, index};
        auto const vf = std::ranges::find(pf.vfs, index, &VfState::index);
        if (vf == pf.vfs.end() || some_vm_has(desired, id)) continue;
        auto const lacking = still_to_write(settings, vf->settings, written_before(desired, id));
        if (!empty(lacking)) all.push_back({index, lacking});
    }
    std::ranges::sort(all, {}, &VfChange::index);
    return all;
}

void configure_free(Plan& plan, HostView const& host, DesiredState const& desired,
                    PfState const& pf, PfSpec const& spec) {
    auto lacking = lacking_on_free(desired, pf, spec);
    if (lacking.empty()) return;
    if (host.hypervisor.stale) {
        plan.notes.push_back(
            fmt::format("VFs keep their settings: libvirt can't report which are in use: {}",
                        host.hypervisor.stale_reason));
        return;
    }
    auto const uses = vf_uses(host, desired, pf.info.pci);
    std::erase_if(lacking, [&](VfChange const& change) {
        auto const use =
            std::ranges::find(uses, change.index, [](VfUse const& one) { return one.vf.index; });
        if (use == uses.end()) return false;
        plan.notes.push_back(
            fmt::format("VF {} keeps its settings: it is {}", change.index, use->reason));
        return true;
    });
    if (!lacking.empty())
        plan.steps.emplace_back(ConfigureVfs{pf.info.pci, std::move(lacking), {}});
}

std::vector<VfSpec> settings_of_free(PfSpec const& spec) {
    std::vector<VfSpec> all;
    for (auto const& free : spec.free_vfs) all.push_back(free.settings);
    return all;
}

Result<void> check_free(HostView const& host, DesiredState const& desired, PfState const& pf,
                        PfSpec const& spec) {
    auto const count = spec.num_vfs.value_or(static_cast<std::uint16_t>(pf.vfs.size()));
    for (auto const& [index, settings] : spec.free_vfs) {
        VfId const vf{pf.info.pci, index};
        if (index >= count)
            return fail(Problem::limit_exceeded,
                        fmt::format("VF {} has settings in the spec, but {} has {} VFs", index,
                                    display_name(pf.info), count),
                        "raise num_vfs, or leave that VF out of free_vfs");
        auto const* const state = find_vf(host, vf);
        auto const given = state ? differing(settings, state->settings) : settings;
        auto const before = stored_of(desired, vf);
        if (given.mac)
            VFMGR_CHECK(given.mac == before.mac ? check_unique(host, desired, vf, no_vm, *given.mac)
                                                : check_mac(host, desired, vf, no_vm, *given.mac));
        for (auto const& guid : {given.node_guid, given.port_guid})
            if (guid)
                VFMGR_CHECK(guid == before.node_guid || guid == before.port_guid
                                ? check_unique(host, desired, vf, *guid)
                                : check_guid(host, desired, vf, *guid));
    }
    return {};
}

}  // namespace vfmgr
