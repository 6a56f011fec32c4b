// SPDX-License-Identifier: Apache-2.0
// Mode enforce: plans the way from the observed state to the desired one. In every mode: closes the
// host again. Nothing here takes a VF from its user.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/free_vfs.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// Returns the users that would lose a VF. A VF that is attached, in quarantine, or named in the
// persistent XML of the VM that it is attached to does not count as in use for that alone.
std::vector<VfUse> users_now(HostView const& host, std::vector<Attachment> const& attachments,
                             PciAddress const& pf) {
    auto uses = vf_uses(host, {}, pf);
    std::erase_if(uses, [&](VfUse const& use) {
        return std::ranges::any_of(attachments, [&](Attachment const& attachment) {
            return attachment.vf == use.vf && attachment.vm_uuid == use.config_of;
        });
    });
    return uses;
}

bool some_are_missing(PfState const& pf, PfSpec const& spec,
                      std::vector<Attachment> const& attachments) {
    if (spec.num_vfs) return *spec.num_vfs != pf.vfs.size();
    return std::ranges::any_of(attachments, [&](Attachment const& attachment) {
        return std::ranges::find(pf.vfs, attachment.vf.index, &VfState::index) == pf.vfs.end();
    });
}

// Recreates every VF: the kernel has no other way to raise their number.
Result<void> make_anew(Plan& plan, HostView const& host, PfState const& pf, PfSpec const& spec,
                       std::vector<Attachment> const& attachments) {
    auto const& info = pf.info;
    if (!spec.num_vfs)
        return fail(Problem::conflict,
                    fmt::format("VFs of {} are gone, and their number was never configured",
                                display_name(info)),
                    fmt::format("configure it: vfctl pf set {} --num-vfs …", to_string(info.pci)));
    VFMGR_CHECK(require_users(host, display_name(info)));
    std::vector<std::string> reasons;
    for (auto const& use : users_now(host, attachments, info.pci))
        reasons.push_back(fmt::format("VF {} is {}", use.vf.index, use.reason));
    if (!reasons.empty())
        return fail(
            Problem::vf_in_use,
            fmt::format("{} has {} VFs, and changing that to {} would recreate them all, but {}",
                        display_name(info), pf.vfs.size(), *spec.num_vfs, fmt::join(reasons, "; ")),
            fmt::format("free them there, or accept the number: vfctl pf set {} --num-vfs {}",
                        to_string(info.pci), pf.vfs.size()));
    VFMGR_CHECK(require_free_pci(host));
    if (!pf.vfs.empty())
        plan.blast_radius.push_back(
            fmt::format("all {} VFs of {} are recreated", pf.vfs.size(), display_name(info)));
    if (!attachments.empty()) raise_for_vfs(plan.steps, pf);
    if (info.num_vfs == *spec.num_vfs) plan.steps.emplace_back(SetNumVfs{info.pci, 0});
    plan.steps.emplace_back(SetNumVfs{info.pci, *spec.num_vfs});
    return {};
}

// Collects what the attachments' VFs lack, as one step for each kind of change.
struct Devices {
    BindVfs unbind;
    std::map<std::vector<std::string>, ConfigureVfs> configure;  // by the settings that may be
                                                                 // refused
    std::map<std::string, BindVfs> bind;                         // by driver
    std::vector<AttachExternal> external{};                      // once they are bound

    void set(Attachment const& attachment, VfSpec const& settings) {
        if (empty(settings)) return;
        auto& step = configure[attachment.spec.best_effort];
        step.pf = attachment.vf.pf;
        step.best_effort = attachment.spec.best_effort;
        step.changes.push_back({attachment.vf.index, settings});
    }
    void set_free(PciAddress const& pf, std::uint16_t index, VfSpec const& settings) {
        auto& step = configure[{}];
        step.pf = pf;
        step.changes.push_back({index, settings});
    }
    void give_driver(Attachment const& attachment) {
        auto& step = bind[attachment.driver];
        step.pf = attachment.vf.pf;
        step.driver = attachment.driver;
        step.vfs.push_back(attachment.vf.index);
        if (attachment.holder) external.push_back(attach_external(attachment));
    }
    void append_to(Plan& plan) && {
        if (!unbind.vfs.empty()) plan.steps.emplace_back(std::move(unbind));
        for (auto& [may_be_refused, step] : configure) plan.steps.emplace_back(std::move(step));
        for (auto& [driver, step] : bind) plan.steps.emplace_back(std::move(step));
        for (auto& step : external) plan.steps.emplace_back(std::move(step));
    }
};

// Returns a sentence about what can't be repaired, if there is any.
std::optional<std::string> repair_device(Devices& devices, Attachment const& attachment,
                                         VfState const& vf) {
    if (vf.pci != attachment.vf_pci)
        return fmt::format("VF {} is at {}, but VM {} was given {}: detach it and attach it again",
                           to_string(attachment.vf), to_string(vf.pci), attachment.vm,
                           to_string(attachment.vf_pci));
    if (vf.driver == attachment.driver) {
        // Includes settings that are not reported: the program that changed one may have changed
        // them.
        if (!empty(drifted_settings(attachment, vf)))
            devices.set(attachment, differing(attachment.settings, vf.settings));
        if (lacks_its_nodes(attachment, vf))
            devices.external.push_back(attach_external(attachment));
        return std::nullopt;
    }
    if (!vf.holders.empty())
        return fmt::format("VF {}, attached to VM {}, is held open by {} (pid {})",
                           to_string(attachment.vf), attachment.vm, vf.holders[0].comm,
                           vf.holders[0].pid);
    if (vf.driver) devices.unbind.vfs.push_back(attachment.vf.index);
    devices.set(attachment, differing(attachment.settings, vf.settings));
    devices.give_driver(attachment);
    return std::nullopt;
}

void repair_devices(Plan& plan, std::vector<Error>& refused, PfState const& pf,
                    std::vector<Attachment> const& attachments) {
    Devices devices{{pf.info.pci, {}, {}}, {}, {}};
    std::vector<std::string> reasons;
    for (auto const& attachment : attachments) {
        auto const vf = std::ranges::find(pf.vfs, attachment.vf.index, &VfState::index);
        if (vf == pf.vfs.end()) continue;
        if (auto why_not = repair_device(devices, attachment, *vf))
            reasons.push_back(std::move(*why_not));
    }
    std::move(devices).append_to(plan);
    if (!reasons.empty())
        refused.push_back({Problem::vf_in_use, fmt::format("{}", fmt::join(reasons, "; ")),
                           "fix what is named: vfmgr takes no VF from its user"});
}

// VFs that were just created have no settings yet.
void set_up_anew(Plan& plan, PfSpec const& spec, PciAddress const& pf,
                 std::vector<Attachment> const& attachments) {
    Devices devices{{pf, {}, {}}, {}, {}};
    BindVfs unused{pf, {}, spec.vf_driver};
    for (std::uint16_t index = 0; index < spec.num_vfs; ++index) unused.vfs.push_back(index);
    for (auto const& attachment : attachments) {
        devices.set(attachment, attachment.settings);
        devices.give_driver(attachment);
        std::erase(unused.vfs, attachment.vf.index);
    }
    for (auto const& [index, settings] : spec.free_vfs)
        if (std::ranges::count(unused.vfs, index) > 0) devices.set_free(pf, index, settings);
    std::move(devices).append_to(plan);
    if (spec.vf_driver && !unused.vfs.empty()) plan.steps.emplace_back(std::move(unused));
}

// A refusal does not prevent other repairs. It is the result when there are none.
Result<Plan> what_can_be_done(Plan plan, std::vector<Error> const& refused) {
    if (plan.steps.empty() && !refused.empty()) return fail(refused.front());
    for (auto const& error : refused)
        plan.notes.push_back(fmt::format("{}: {}", error.detail, error.remedy));
    return plan;
}

}  // namespace

Result<Plan> plan_repair(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_CHECK(require_same_pf(host, desired, pf));
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    auto const managed = desired.pfs.find(pf);
    Plan plan;
    if (managed == desired.pfs.end() || managed->second.spec.mode != PfMode::enforce) return plan;
    auto const& [spec, revision, base] = managed->second;
    auto const attachments = attached_on(desired, pf);
    std::vector<Error> refused;
    bool anew = some_are_missing(*state, spec, attachments);
    if (anew) {
        auto made = make_anew(plan, host, *state, spec, attachments);
        anew = made.has_value();
        if (!anew) refused.push_back(std::move(made).error());
    }
    if (base && !attachments.empty()) {
        auto links =
            links_up(*state, desired_links(pf, desired.networks, *base, attachments), *base);
        std::erase_if(links,
                      [&](Step const& step) { return std::ranges::count(plan.steps, step); });
        std::ranges::move(links, std::back_inserter(plan.steps));
    }
    if (anew) {
        set_up_anew(plan, spec, pf, attachments);
        await_carrier(plan.steps);
        return plan;
    }
    repair_devices(plan, refused, *state, attachments);
    configure_free(plan, host, desired, *state, spec);
    if (auto bind = bind_unused(host, desired, *state, spec); bind && !host.hypervisor.stale)
        plan.steps.emplace_back(std::move(*bind));
    await_carrier(plan.steps);
    return what_can_be_done(std::move(plan), refused);
}

Result<Plan> plan_rebinding(HostView const& host, DesiredState const& desired,
                            PciAddress const& pf) {
    auto const* const state = find_pf(host, pf);
    // Nothing is repaired of another device, or of none: that it is so is drift of its own.
    if (!can_be_judged(state) || !require_same_pf(host, desired, pf)) return Plan{};
    auto attachments = attached_on(desired, pf);
    std::erase_if(attachments, [&](Attachment const& attachment) {
        auto const* const vf = find_vf(host, attachment.vf);
        auto const* const vm = find_vm(host, attachment.vm_uuid);
        return !attachment.spec.adopt || !vf || !vm || is_running(*vm) ||
               vf->driver == attachment.driver;
    });
    Plan plan;
    std::vector<Error> refused;
    repair_devices(plan, refused, *state, attachments);
    return what_can_be_done(std::move(plan), refused);
}

Result<Plan> plan_closing(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    auto const managed = desired.pfs.find(pf);
    Plan plan;
    if (managed == desired.pfs.end() || !managed->second.base) return plan;
    auto const& base = managed->second.base;
    auto attachments = attachments_on(desired, pf, "");  // including attachments whose VMs are
                                                         // still to prove RDMA
    // An external holder may use its VF as long as it likes while that is being detached.
    std::erase_if(attachments, [](Attachment const& attachment) {
        return attachment.state == AttachmentState::detaching && !attachment.holder;
    });
    plan.steps =
        links_closed(*state, desired_links(pf, desired.networks, *base, attachments), *base);
    return plan;
}

Result<Plan> plan_return(HostView const& host, Attachment const& attachment) {
    VFMGR_TRY(VmInfo const* vm, readable_vm(host, attachment.vm_uuid));
    auto const* vf = find_vf(host, attachment.vf);
    Plan plan;
    if (!vf || vf->pci != attachment.vf_pci || vf->driver != attachment.driver) return plan;
    auto const missing = missing_hostdev(attachment, *vm);
    if (!missing.live && !missing.config) return plan;
    if (missing.live && !vf->holders.empty())
        return fail(Problem::vf_in_use,
                    fmt::format("VF {}, attached to VM {}, is held open by {} (pid {})",
                                to_string(attachment.vf), attachment.vm, vf->holders[0].comm,
                                vf->holders[0].pid),
                    "free it there: vfmgr takes no VF from its user");
    if (missing.live) VFMGR_CHECK(require_free_ports(*vm, 1));
    plan.steps.emplace_back(AttachHostdev{vm->uuid, attachment.id, attachment.vf, vf->pci,
                                          attachment.settings.mac, missing.live, missing.config,
                                          vm->name, attachment.spec.guest_address});
    return plan;
}

}  // namespace vfmgr
