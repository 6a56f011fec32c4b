// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "api/types/json.hpp"
#include "vfmgr/plan/free_vfs.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

template <>
void Json<Plan>::write(nlohmann::json& out, Plan const& plan) {
    auto steps = nlohmann::json::array();
    for (auto const& step : plan.steps) {
        nlohmann::json described;
        to_json(described, step);
        described["sentence"] = sentence(step);
        steps.push_back(std::move(described));
    }
    JsonWriter writer(out);
    writer.value("steps", steps);
    writer.value("blast_radius", plan.blast_radius);
    writer.value("notes", plan.notes);
}

namespace {

Result<void> check_count(HostView const& host, DesiredState const& desired, PfState const& pf,
                         std::uint16_t count) {
    auto const& info = pf.info;
    if (count > info.total_vfs)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} ({}) allows {} VFs, {} were requested", display_name(info),
                                to_string(info.pci), info.total_vfs, count),
                    fmt::format("request at most {}", info.total_vfs));
    if (count == info.num_vfs || info.num_vfs == 0) return {};
    VFMGR_CHECK(require_users(host, display_name(info)));
    auto const uses = vf_uses(host, desired, info.pci);
    if (uses.empty()) return {};
    std::vector<std::string> reasons;
    for (auto const& use : uses)
        reasons.push_back(fmt::format("VF {} is {}", use.vf.index, use.reason));
    return fail(Problem::vf_in_use,
                fmt::format("changing {} from {} to {} VFs would remove every VF, but {}",
                            display_name(info), info.num_vfs, count, fmt::join(reasons, "; ")),
                "detach them first: vfctl detach VM, or virsh detach-device for what vfmgr did "
                "not attach");
}

Plan count_steps(PfState const& pf, std::uint16_t count, PfSpec const& spec) {
    Plan plan;
    auto const& info = pf.info;
    if (info.num_vfs > 0)
        plan.blast_radius.push_back(fmt::format("all {} VFs of {} are removed{}", info.num_vfs,
                                                display_name(info), count ? " and recreated" : ""));
    plan.steps.emplace_back(SetNumVfs{info.pci, count});
    if (!spec.free_vfs.empty()) {
        ConfigureVfs configure{info.pci, {}, {}};
        for (auto const& [index, settings] : spec.free_vfs)
            configure.changes.push_back({index, settings});
        plan.steps.emplace_back(std::move(configure));
    }
    if (!spec.vf_driver || count == 0) return plan;
    BindVfs bind{info.pci, std::vector<std::uint16_t>(count), spec.vf_driver};
    std::iota(bind.vfs.begin(), bind.vfs.end(), std::uint16_t{0});
    plan.steps.emplace_back(std::move(bind));
    return plan;
}

}  // namespace

Result<Plan> plan_pf(HostView const& host, DesiredState const& desired, PciAddress const& pf,
                     PfSpec const& spec) {
    VFMGR_CHECK(require_same_pf(host, desired, pf));
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    Plan plan;
    if (spec.mode == PfMode::observe) {
        if (!attachments_on(desired, pf, "").empty())
            return fail(Problem::conflict,
                        fmt::format("{} has VFs attached to VMs and can't be set to mode observe",
                                    display_name(state->info)),
                        "detach them first");
        plan.notes.push_back(fmt::format("{} is only observed: nothing is changed on it",
                                         display_name(state->info)));
        return plan;
    }
    VFMGR_CHECK(check_free(host, desired, *state, spec));
    if (spec.num_vfs && *spec.num_vfs != state->info.num_vfs) {
        VFMGR_CHECK(check_count(host, desired, *state, *spec.num_vfs));
        VFMGR_CHECK(require_free_pci(host));
        return count_steps(*state, *spec.num_vfs, spec);
    }
    configure_free(plan, host, desired, *state, spec);
    if (spec.vf_driver && host.hypervisor.stale)
        plan.notes.push_back(
            fmt::format("VFs keep their drivers: libvirt can't report which are in use: {}",
                        host.hypervisor.stale_reason));
    else if (auto bind = bind_unused(host, desired, *state, spec))
        plan.steps.emplace_back(std::move(*bind));
    return plan;
}

Result<void> check_unused(DesiredState const& desired, PciAddress const& pf) {
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {} is attached to {} (attachment {})",
                                    to_string(attachment.vf), attachment.vm, id),
                        fmt::format("detach it first: vfctl detach {}", id));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {}, last attached to {}, is in quarantine", to_string(vf),
                                    quarantine.attachment.vm),
                        fmt::format("clean it first: vfctl vf lift-quarantine {} {}", to_string(pf),
                                    vf.index));
    return {};
}

}  // namespace vfmgr
