// SPDX-License-Identifier: Apache-2.0
// Changes an attachment under its VM. The changed attachment is what an attach with the changed
// request would have given.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/plan/attach_request.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

std::string vf_text(PfState const& pf, Attachment const& attachment) {
    return fmt::format("VF {} of {}", attachment.vf.index, display_name(pf.info));
}

Error lost(PfState const& pf, Attachment const& attachment, std::string const& how) {
    return discreetly(
        {Problem::conflict,
         fmt::format("VM {} does not have {} as attachment {} gave it: {}", attachment.vm,
                     vf_text(pf, attachment), attachment.id, how),
         fmt::format("detach it, and attach it again: vfctl detach {}", attachment.id)},
        fmt::format("VM {} has lost the VF of attachment {}", attachment.vm, attachment.id),
        "detach it, and attach it again");
}

bool has_vf(VmInfo const& vm, PciAddress const& pci) {
    return find_hostdev(vm.live, pci) != nullptr;
}

// The VF must be that of the attachment still, in the VM, and in no other.
Result<VfState const*> held_vf(HostView const& host, PfState const& pf, VmInfo const& vm,
                               Attachment const& attachment) {
    auto const* const vf = find_vf(host, attachment.vf);
    if (!vf) return fail(lost(pf, attachment, "the VF is gone"));
    if (vf->pci != attachment.vf_pci)
        return fail(lost(pf, attachment, fmt::format("it moved to {}", to_string(vf->pci))));
    if (vf->driver != attachment.driver)
        return fail(lost(pf, attachment,
                         fmt::format("its driver is {}, not {}", vf->driver.value_or("none"),
                                     attachment.driver)));
    auto const missing = missing_hostdev(attachment, vm);
    if (missing.live) return fail(lost(pf, attachment, "the running VM lacks the device"));
    if (missing.config) return fail(lost(pf, attachment, "its persistent XML lacks the device"));
    for (auto const& [uuid, other] : host.hypervisor.vms)
        if (uuid != vm.uuid && has_vf(other, vf->pci))
            return fail(lost(pf, attachment, fmt::format("VM {} has the device", other.name)));
    return vf;
}

Result<void> require_attached(Attachment const& attachment) {
    if (attachment.state == AttachmentState::attached) return {};
    return fail(
        discreetly({Problem::conflict,
                    fmt::format("attachment {} is {}", attachment.id, enum_name(attachment.state)),
                    "wait until it is attached"}));
}

Error violation(std::string pointer, std::string detail) {
    Error error{Problem::invalid_request, fmt::format("{} {}", pointer, detail),
                "correct the named fields and send it again"};
    error.violations.push_back({std::move(pointer), std::move(detail)});
    return discreetly(std::move(error));
}

Result<Vlan> merged(std::optional<Vlan> const& now, VlanPatch const& patch) {
    if (!now && !patch.id)
        return fail(violation("/settings/vlan/id", "is required: the VF has no VLAN"));
    auto vlan = now.value_or(Vlan{});
    vlan.id = patch.id.value_or(vlan.id);
    vlan.qos = patch.qos.value_or(vlan.qos);
    vlan.proto = patch.proto.value_or(vlan.proto);
    return vlan;
}

// The settings as if they had been requested at once.
Result<VfSpec> requested_settings(Attachment const& now, VfPatch const& patch) {
    auto settings = overlay(now.spec.settings, patch.set);
    for_each_member([&](VfAttribute attribute, auto member) {
        if (std::ranges::find(patch.removed, attribute) != patch.removed.end())
            (settings.*member).reset();
    });
    if (patch.vlan) {
        VFMGR_TRY(settings.vlan, merged(now.settings.vlan, *patch.vlan));
    }
    auto const max = settings.max_tx_rate_mbps.value_or(0);
    if (max != 0 && settings.min_tx_rate_mbps.value_or(0) > max)
        return fail(violation("/settings/min_tx_rate_mbps",
                              fmt::format("must not exceed max_tx_rate_mbps, {}", max)));
    return settings;
}

// A MAC that was chosen stays; one that was given and is removed makes room for a chosen one.
Result<void> settle_mac(AttachRequest const& ask, Attachment const& now, VfSpec& settings,
                        std::string_view host_seed, Plan& plan) {
    if (settings.mac && settings.mac != now.settings.mac)
        VFMGR_CHECK(check_mac(ask.host, ask.desired, now.vf, ask.vm.uuid, *settings.mac));
    if (!settings.mac && !now.spec.settings.mac) settings.mac = now.settings.mac;
    if (!settings.mac) {
        VFMGR_TRY(settings.mac, choose_mac(ask.host, ask.desired, now.vf, ask.vm.uuid, host_seed));
        plan.notes.push_back(
            fmt::format("MAC {} was chosen: none was given", to_string(*settings.mac)));
    }
    if (settings.mac == now.settings.mac || !is_closed_by_mac(ask)) return {};
    return fail(discreetly(
        {Problem::conflict,
         fmt::format("the host is closed to VM {} by its MAC on network {}, so the MAC stays while "
                     "the VF is attached",
                     now.vm, ask.network->name),
         "detach it, and attach it again with the other MAC"}));
}

// Resolves the settings as an attach does, and takes of that what the patch names. Detach restores
// the baseline: what was set before the change is not what the VF had.
Result<void> settle(AttachRequest const& ask, VfState const& vf, Attachment const& now,
                    VfPatch const& patch, Attachment& changed, std::string_view host_seed,
                    Plan& plan) {
    auto& settings = changed.settings;
    settings = changed.spec.settings;
    Plan said_at_attach;
    VFMGR_CHECK(fit_to_network(ask, vf, settings, said_at_attach));
    if (ask.pf.info.link_layer == LinkLayer::ethernet)
        VFMGR_CHECK(settle_mac(ask, now, settings, host_seed, plan));
    auto const named = named_by(patch);
    for_each_member([&](VfAttribute attribute, auto member) {
        if (std::ranges::find(named, attribute) == named.end())
            settings.*member = now.settings.*member;
        else if (!(settings.*member))
            (changed.baseline.*member).reset();
        else if (!(now.settings.*member))
            changed.baseline.*member = vf.settings.*member;
    });
    if (settings != now.settings) changed.verification.reset();
    return {};
}

// What has to be written to the VF. A MAC is written even where it is reported: the report does not
// show whether the guest set it.
VfSpec to_be_written(Attachment const& from, Attachment const& to, VfState const& vf,
                     std::vector<std::string>& notes) {
    VfSpec write;
    for_each_member([&](VfAttribute attribute, auto member) {
        auto const& had = from.settings.*member;
        auto const& gets = to.settings.*member;
        if (had == gets) return;
        auto const& value = gets ? gets : from.baseline.*member;
        if (!value)
            notes.push_back(fmt::format("{} stays as it is: what the VF had before is not known",
                                        enum_name(attribute)));
        else if (attribute == VfAttribute::mac || value != vf.settings.*member)
            write.*member = value;
    });
    return write;
}

// What the VM notices of it: a sentence each.
std::vector<std::string> interruptions(PfState const& pf, VmInfo const& vm,
                                       Attachment const& attachment, VfSpec const& write) {
    using quirks::Effect;
    std::vector<std::string> sentences;
    bool const runs = vm.state == VmState::running || vm.state == VmState::paused;
    if (!runs || (!attachment.live && !attachment.holder)) return sentences;
    auto const& driver = pf.info.driver;
    std::vector<std::string_view> resetting;
    for_each_member([&](VfAttribute attribute, auto member) {
        auto const of = quirks::affected_by(Effect::resets_vf, driver);
        if ((write.*member) && (of & quirks::bit(attribute)) != 0)
            resetting.push_back(enum_name(attribute));
    });
    if (!resetting.empty())
        sentences.push_back(
            fmt::format("{} resets {} when its {} {}: VM {} loses its link for a moment", driver,
                        vf_text(pf, attachment), fmt::join(resetting, " and "),
                        resetting.size() == 1 ? "changes" : "change", vm.name));
    auto const waits = quirks::affected_by(Effect::waits_for_load, driver);
    if (write.mac && (waits & quirks::bit(VfAttribute::mac)) != 0)
        sentences.push_back(fmt::format(
            "{} changes the MAC of {}, which VM {} takes over when its driver of the VF "
            "is loaded again: until then it receives nothing",
            driver, vf_text(pf, attachment), vm.name));
    return sentences;
}

Result<void> require_consent(Attachment const& attachment,
                             std::vector<std::string> const& interruptions, bool given) {
    if (interruptions.empty() || given) return {};
    constexpr auto remedy =
        "allow it: allow_reset true (vfctl attachment set … --allow-reset), or change it while the "
        "VM is shut off";
    return fail(discreetly(
        {Problem::vf_in_use, fmt::format("{}", fmt::join(interruptions, "; ")), remedy},
        fmt::format("the change interrupts the network of VM {}", attachment.vm), remedy));
}

// Points into the host view and the desired state.
struct HeldVf {
    PfState const& pf;
    DesiredPf const& managed;
    VmInfo vm;
    VfState const& vf;
};

Result<HeldVf> held(HostView const& host, DesiredState const& desired,
                    Attachment const& attachment) {
    VFMGR_CHECK(require_attached(attachment));
    auto const& pci = attachment.vf.pf;
    VFMGR_CHECK(require_same_pf(host, desired, pci));
    VFMGR_TRY(PfState const* pf, readable_pf(host, pci));
    VFMGR_TRY(DesiredPf const* managed, managed_pf(desired, *pf));
    VFMGR_TRY(VmInfo vm, vm_of(host, attachment));
    VFMGR_TRY(VfState const* vf, held_vf(host, *pf, vm, attachment));
    return HeldVf{*pf, *managed, std::move(vm), *vf};
}

std::vector<Step> links_for(HeldVf const& held, DesiredState const& desired, PfBase const& base,
                            Attachment const& attachment) {
    auto const& pci = attachment.vf.pf;
    auto attachments = attachments_on(desired, pci, attachment.id);
    attachments.push_back(attachment);
    return links_up(held.pf, desired_links(pci, desired.networks, base, attachments), base);
}

// Of the host's links only what the change needs: what else differs is drift.
void add_steps(Plan& plan, HeldVf const& held, DesiredState const& desired, PfBase const& base,
               Attachment const& from, Attachment const& to, VfSpec const& write) {
    auto const before = links_for(held, desired, base, from);
    for (auto& step : links_for(held, desired, base, to))
        if (std::ranges::find(before, step) == before.end()) plan.steps.push_back(std::move(step));
    if (!empty(write))
        plan.steps.emplace_back(
            ConfigureVfs{to.vf.pf, {VfChange{to.vf.index, write}}, to.spec.best_effort});
}

PfBase base_for(HeldVf const& held) {
    return held.managed.base ? *held.managed.base : base_of(held.pf);
}

}  // namespace

Result<AttachmentPlan> plan_change(HostView const& host, DesiredState const& desired,
                                   Attachment const& now, AttachmentPatch const& patch,
                                   std::string_view host_seed) {
    VFMGR_TRY(HeldVf const vf_of, held(host, desired, now));
    AttachmentPlan result{now, base_for(vf_of), {}};
    auto& [changed, base, plan] = result;
    VFMGR_TRY(changed.spec.settings, requested_settings(now, patch.settings));
    if (patch.best_effort) changed.spec.best_effort = *patch.best_effort;
    auto const* const network =
        now.spec.network ? find_network(desired.networks, *now.spec.network) : nullptr;
    Resolved asked{changed.spec};
    asked.spec.verify = patch.verify;
    asked.spec.verify_every_seconds = 0;
    AttachRequest const ask{host,     desired, asked, asked.spec, vf_of.pf, vf_of.managed.spec,
                            vf_of.vm, network};
    VFMGR_CHECK(settle(ask, vf_of.vf, now, patch.settings, changed, host_seed, plan));
    if (changed == now) return AttachmentPlan{now, base, {}};
    VFMGR_CHECK(check_verification(ask, changed));
    auto const write = to_be_written(now, changed, vf_of.vf, plan.notes);
    plan.blast_radius = interruptions(vf_of.pf, vf_of.vm, now, write);
    VFMGR_CHECK(require_consent(now, plan.blast_radius, patch.allow_reset));
    add_steps(plan, vf_of, desired, base, now, changed, write);
    if (patch.verify == VerifyMode::required)
        plan.steps.emplace_back(AwaitVerification{
            now.id, patch.verify_timeout_seconds.value_or(now.spec.verify_timeout_seconds)});
    return result;
}

Result<Plan> plan_change_back(HostView const& host, DesiredState const& desired,
                              Attachment const& now, Attachment const& before) {
    VFMGR_TRY(HeldVf const vf_of, held(host, desired, now));
    Plan plan;
    auto const write = to_be_written(now, before, vf_of.vf, plan.notes);
    plan.blast_radius = interruptions(vf_of.pf, vf_of.vm, now, write);
    add_steps(plan, vf_of, desired, base_for(vf_of), now, before, write);
    return plan;
}

}  // namespace vfmgr
