// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// What the detach restores. What an adopted VF had before its VM got it, nobody recorded.
VfSpec baseline_of(Attachment const& attachment, VfSpec const& reported) {
    if (!attachment.spec.adopt) return attachment.baseline;
    return overlay(only_members_of(reported, as_made()), attachment.baseline);
}

// Only a VF that exists can be shown to be clean (vfmgr/kernel/KERNEL.md#guids-outlive-vfs).
std::vector<std::string> residue_of_a_gone_vf(Attachment const& attachment) {
    constexpr auto outliving = quirks::affected_by(quirks::Effect::outlives_vf);
    if (!quirks::has_any(baseline_of(attachment, attachment.settings), outliving)) return {};
    return {fmt::format("VF {} is gone, and the next VF created in its place gets its GUIDs",
                        to_string(attachment.vf))};
}

template <class Address>
std::optional<Rotated<Address>> rotated_of(Attachment const& attachment, VfSpec const& now,
                                           std::optional<Address> VfSpec::* member) {
    auto const& given = attachment.settings.*member;
    if (!given || given == baseline_of(attachment, attachment.settings).*member)
        return std::nullopt;
    return Rotated<Address>{*given, now.*member};
}

RotatedAddresses rotated_of(Attachment const& attachment, VfSpec const& now) {
    return {rotated_of(attachment, now, &VfSpec::mac),
            rotated_of(attachment, now, &VfSpec::node_guid),
            rotated_of(attachment, now, &VfSpec::port_guid)};
}

template <class Address>
void note_kept(std::vector<std::string>& residue, Attachment const& attachment, char const* name,
               std::optional<Rotated<Address>> const& rotated) {
    if (rotated && rotated->is == rotated->was)
        residue.push_back(fmt::format("VF {} still has the {} {} of VM {}",
                                      to_string(attachment.vf), name, to_string(rotated->was),
                                      attachment.vm));
}

std::vector<std::string> residue_of(Attachment const& attachment, VfState const& vf,
                                    DetachNotes const& notes) {
    std::vector<std::string> residue;
    // The VF came back during the detach: another program recreated the PF's VFs.
    if (!notes.reset_done_at)
        residue.push_back(fmt::format("VF {} was not reset: it did not exist when the detach began",
                                      to_string(attachment.vf)));
    auto left = differing(baseline_of(attachment, vf.settings), vf.settings);
    // A network driver of the host may choose a MAC for its VF. That is fine, unless it is the
    // attachment's MAC.
    if (vf.driver && !names_vfio_driver(*vf.driver) && vf.settings.mac != attachment.settings.mac)
        left.mac.reset();
    if (!empty(left))
        residue.push_back(
            "still to do: " +
            sentence(ConfigureVfs{attachment.vf.pf, {{attachment.vf.index, left}}, {}}));
    // Also checks a VF without a baseline to restore: the driver may have reported none before the
    // attachment.
    auto const rotated = rotated_of(attachment, vf.settings);
    if (!left.mac) note_kept(residue, attachment, "MAC", rotated.mac);
    if (!left.node_guid) note_kept(residue, attachment, "node GUID", rotated.node_guid);
    if (!left.port_guid) note_kept(residue, attachment, "port GUID", rotated.port_guid);
    for (auto const& holder : vf.holders)
        residue.push_back(fmt::format("VF {} is held open by {} (pid {})", to_string(attachment.vf),
                                      holder.comm, holder.pid));
    return residue;
}

Certificate certificate_of(Attachment const& attachment, PfState const& pf, VfState const& vf,
                           DetachNotes const& notes) {
    Certificate certificate;
    certificate.vf = attachment.vf;
    certificate.vf_pci = vf.pci;
    certificate.attachment = attachment.id;
    certificate.vm = attachment.vm;
    certificate.settings = vf.settings;
    certificate.driver = vf.driver;
    certificate.observed_at = pf.observed_at;
    certificate.attached = {attachment.created_at, attachment.operation, attachment.requested_by};
    certificate.detached = notes.detached;
    certificate.reset = VfReset{ResetMethod::flr, *notes.reset_done_at};
    certificate.restored = {only_members_of(attachment.settings, notes.before),
                            only_members_of(attachment.settings, vf.settings)};
    certificate.rotated = rotated_of(attachment, vf.settings);
    certificate.counters = notes.counters;
    return certificate;
}

Error no_certificate(std::string detail, std::string remedy) {
    return {Problem::not_found, std::move(detail), std::move(remedy)};
}

Error why_none(Event const& last, std::string const& attachment) {
    VfId const vf{last.pf.value_or(PciAddress{}), last.vf.value_or(0)};
    auto const vm = last.vm.value_or("a VM");
    if (last.kind == EventKind::attach_failed)
        return no_certificate(
            fmt::format("attachment {} never began: it did not attach VF {} to VM {}", attachment,
                        to_string(vf), vm),
            fmt::format("no action is needed; for the reason: vfctl vf history {} {}",
                        to_string(vf.pf), vf.index));
    return no_certificate(
        fmt::format("attachment {} of VM {} ended without a certificate: VF {} no longer existed",
                    attachment, vm, to_string(vf)),
        fmt::format("a VF that is gone holds nothing of the VM; to see what removed it: vfctl vf "
                    "history {} {}",
                    to_string(vf.pf), vf.index));
}

}  // namespace

DetachOutcome detach_outcome(HostView const& after, Attachment const& attachment,
                             DetachNotes const& notes) {
    auto const* const pf = find_pf(after, attachment.vf.pf);
    if (!pf || pf->stale)
        return {{fmt::format("VF {} can't be read: {}", to_string(attachment.vf),
                             pf ? pf->stale_reason : "its PF is gone")},
                {}};
    auto const* const vf = find_vf(after, attachment.vf);
    if (!vf) return {residue_of_a_gone_vf(attachment), {}};
    auto residue = residue_of(attachment, *vf, notes);
    if (!residue.empty()) return {std::move(residue), {}};
    return {{}, certificate_of(attachment, *pf, *vf, notes)};
}

Result<Certificate> find_certificate(DesiredState const& desired, std::vector<Event> const& events,
                                     std::string const& attachment) {
    for (auto const& event : events)
        if (event.certificate && event.certificate->attachment == attachment)
            return *event.certificate;
    if (auto const found = desired.attachments.find(attachment); found != desired.attachments.end())
        return fail(no_certificate(
            fmt::format("attachment {} has not ended ({}): VF {} is attached to VM {}", attachment,
                        enum_name(found->second.state), to_string(found->second.vf),
                        found->second.vm),
            fmt::format("its certificate is issued when it ends: vfctl detach {}", attachment)));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.id == attachment)
            return fail(no_certificate(
                fmt::format("VF {}, last attached to VM {}, is in quarantine: {}: {}",
                            to_string(vf), quarantine.attachment.vm, quarantine.reason,
                            fmt::join(quarantine.residue, "; ")),
                fmt::format("fix what is named, then lift the quarantine, which issues the "
                            "certificate: vfctl vf lift-quarantine {} {}",
                            to_string(vf.pf), vf.index)));
    for (auto const& event : events)
        if (event.kind == EventKind::detached || event.kind == EventKind::attach_failed)
            return fail(why_none(event, attachment));
    return fail(no_certificate(
        fmt::format("there is no attachment {} and no certificate for it", attachment),
        "vfctl vf history lists the attachments of a VF; the newest 1000 certificates of each VF "
        "are kept"));
}

namespace {

// The reset would take the VF from any other user. While the attachment's VM runs with it, that VM
// is the holder.
Result<void> check_others(HostView const& host, Attachment const& attachment, VfState const& vf) {
    auto const alias = hostdev_alias(attachment.id);
    std::string user;
    // Whoever holds an external holder's VF is taken for it: its detach waits for that process.
    if (!vf.holders.empty() && !attachment.holder)
        user = fmt::format("held open by {} (pid {})", vf.holders[0].comm, vf.holders[0].pid);
    if (auto const* own = find_vm(host, attachment.vm_uuid);
        own && has_hostdev(own->live, alias, vf.pci))
        user.clear();
    for (auto const& [uuid, vm] : host.hypervisor.vms)
        if (uuid != attachment.vm_uuid &&
            (has_hostdev(vm.live, alias, vf.pci) || has_hostdev(vm.config, alias, vf.pci)))
            user = fmt::format("also a device of VM {}", vm.name);
    if (user.empty()) return {};
    return fail(Problem::vf_in_use, fmt::format("VF {} is {}", to_string(attachment.vf), user),
                "free it there first: vfmgr did not attach it there");
}

void take_from_holder(Plan& plan, VfState const* vf, Attachment const& attachment) {
    if (!vf) return;
    plan.steps.emplace_back(detach_external(attachment));
    for (auto const& holder : vf->holders)
        plan.notes.push_back(
            fmt::format("VF {} is held open by {} (pid {}): the attachment stays detaching until "
                        "that ends",
                        to_string(attachment.vf), holder.comm, holder.pid));
}

void take_out_of_vm(Plan& plan, HostView const& host, Attachment const& attachment) {
    if (attachment.holder) return take_from_holder(plan, find_vf(host, attachment.vf), attachment);
    auto const* vm = find_vm(host, attachment.vm_uuid);
    if (!vm) {
        plan.notes.push_back(fmt::format("VM {} is gone", attachment.vm));
        return;
    }
    auto const alias = hostdev_alias(attachment.id);
    DetachHostdev detach{vm->uuid,
                         attachment.id,
                         attachment.vf,
                         attachment.vf_pci,
                         has_hostdev(vm->live, alias, attachment.vf_pci),
                         has_hostdev(vm->config, alias, attachment.vf_pci),
                         vm->name,
                         attachment.spec.adopt ? std::optional(true) : std::nullopt};
    if (!detach.live && !detach.config) return;
    plan.steps.emplace_back(detach);
    if (detach.live)
        plan.blast_radius.push_back(fmt::format("unplugs VF {} from the running VM {}",
                                                to_string(attachment.vf), vm->name));
}

void clean(Plan& plan, Attachment const& attachment, VfState const& vf,
           std::optional<std::string> const& idle_driver) {
    auto const& [pf, index] = attachment.vf;
    BindVfs const unbind{pf, {index}, std::nullopt};
    // A VM that was given it by managed='yes' returns it to the host's driver.
    bool const adopted = attachment.spec.adopt.has_value();
    if (adopted) plan.steps.emplace_back(unbind);
    plan.steps.emplace_back(ResetVf{attachment.vf});
    // Sets only what differs: a driver may refuse to set the value that it already has.
    auto const change = differing(baseline_of(attachment, vf.settings), vf.settings);
    if (empty(change) && vf.driver == idle_driver && !adopted) return;
    if (vf.driver && !adopted) plan.steps.emplace_back(unbind);
    if (!empty(change)) plan.steps.emplace_back(ConfigureVfs{pf, {VfChange{index, change}}, {}});
    if (idle_driver) plan.steps.emplace_back(BindVfs{pf, {index}, idle_driver});
}

void restore_attachment(Plan& plan, HostView const& host, Attachment const& attachment) {
    // What was being detached is cleaned by the daemon; until then no VMM shall begin to use it.
    if (attachment.holder && attachment.state == AttachmentState::detaching) return;
    auto const* vf = find_vf(host, attachment.vf);
    if (vf && vf->driver == attachment.driver) {
        if (lacks_its_nodes(attachment, *vf)) plan.steps.emplace_back(attach_external(attachment));
        return;
    }
    auto const& [pf, index] = attachment.vf;
    if (!vf) {
        plan.notes.push_back(fmt::format("VF {} does not exist, so VM {} can't start with it",
                                         to_string(attachment.vf), attachment.vm));
        return;
    }
    if (!vf->holders.empty()) {
        plan.notes.push_back(fmt::format("VF {} is held open by {} (pid {}) and left alone",
                                         to_string(attachment.vf), vf->holders[0].comm,
                                         vf->holders[0].pid));
        return;
    }
    if (vf->pci != attachment.vf_pci) {
        plan.notes.push_back(fmt::format("VF {} is now at {}, but {} {} names {}",
                                         to_string(attachment.vf), to_string(vf->pci),
                                         attachment.holder ? "holder" : "the XML of VM",
                                         attachment.vm, to_string(attachment.vf_pci)));
        return;
    }
    if (vf->driver) plan.steps.emplace_back(BindVfs{pf, {index}, std::nullopt});
    if (auto const change = differing(attachment.settings, vf->settings); !empty(change))
        plan.steps.emplace_back(
            ConfigureVfs{pf, {VfChange{index, change}}, attachment.spec.best_effort});
    plan.steps.emplace_back(BindVfs{pf, {index}, attachment.driver});
    if (attachment.holder) plan.steps.emplace_back(attach_external(attachment));
}

// A VM's XML names addresses. If the VF bound at such an address were not the VM's own, the VM
// would get another device. So an unproved VF is left alone: the VM then fails to start.
Result<void> require_proof(HostView const& host, DesiredState const& desired,
                           PciAddress const& pf) {
    auto const standing = standing_of(host.kernel, desired, pf);
    if (empty(standing.known) || standing.proved) return {};
    return fail(Problem::unavailable,
                fmt::format("nothing confirms that {} is the same PF as before ({}): its MAC or "
                            "GUID can't be read",
                            to_string(pf), to_string(standing.known)),
                "load its driver and, if its interface was moved to another network namespace, "
                "move it back; then: systemctl start vfmgr-restore");
}

}  // namespace

Result<Plan> plan_detach(HostView const& host, DesiredState const& desired,
                         Attachment const& attachment) {
    VFMGR_CHECK(require_same_pf(host, desired, attachment.vf.pf));
    VFMGR_TRY(PfState const* pf, readable_pf(host, attachment.vf.pf));
    VFMGR_CHECK(require_libvirt(host));
    auto const* vf = find_vf(host, attachment.vf);
    if (vf) VFMGR_CHECK(check_others(host, attachment, *vf));
    Plan plan;
    take_out_of_vm(plan, host, attachment);
    auto const managed = desired.pfs.find(attachment.vf.pf);
    if (vf)
        clean(plan, attachment, *vf,
              managed == desired.pfs.end() ? std::nullopt : managed->second.spec.vf_driver);
    else
        plan.notes.push_back(fmt::format("VF {} no longer exists", to_string(attachment.vf)));
    if (managed != desired.pfs.end() && managed->second.base) {
        auto const& base = managed->second.base;
        auto const needed = desired_links(attachment.vf.pf, desired.networks, *base,
                                          attachments_on(desired, attachment.vf.pf, attachment.id));
        auto down = links_down(*pf, needed, desired.networks, *base);
        plan.steps.insert(plan.steps.end(), down.begin(), down.end());
    }
    return plan;
}

Result<Plan> plan_restore(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_CHECK(require_same_pf(host, desired, pf));
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    auto const managed = desired.pfs.find(pf);
    Plan plan;
    if (managed == desired.pfs.end() || managed->second.spec.mode == PfMode::observe) return plan;
    VFMGR_CHECK(require_proof(host, desired, pf));
    auto const& spec = managed->second.spec;
    auto attachments = attachments_on(desired, pf, "");
    // An attachment that was in progress when the host went down is undone by the daemon, not
    // completed here.
    std::erase_if(attachments, [](Attachment const& attachment) {
        return attachment.state == AttachmentState::attaching;
    });
    // Makes VFs only when there are none: at boot there are none, and VFs that exist may be in use.
    if (spec.num_vfs && *spec.num_vfs > 0 && state->info.num_vfs == 0) {
        if (!attachments.empty()) raise_for_vfs(plan.steps, *state);
        plan.steps.emplace_back(SetNumVfs{pf, *spec.num_vfs});
        return plan;
    }
    if (!attachments.empty() && managed->second.base) {
        auto const& base = *managed->second.base;
        plan.steps = links_up(*state, desired_links(pf, desired.networks, base, attachments), base);
        for (auto const& attachment : attachments) restore_attachment(plan, host, attachment);
        await_carrier(plan.steps);
    }
    // These come last: nothing waits for them. A VF with a driver may be in a VM; libvirt does not
    // run yet to report it.
    if (auto bind = bind_unused(host, desired, *state, spec)) {
        std::erase_if(bind->vfs, [&](std::uint16_t index) {
            auto const* vf = find_vf(host, VfId{pf, index});
            return !vf || vf->driver;
        });
        if (!bind->vfs.empty()) plan.steps.emplace_back(std::move(*bind));
    }
    return plan;
}

}  // namespace vfmgr
