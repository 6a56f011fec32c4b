// SPDX-License-Identifier: Apache-2.0
// Planning is pure: no I/O, no clock, no log. Every refusal a user can meet is decided here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/attachment_patch.hpp"
#include "api/types/event.hpp"
#include "api/types/operation.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

struct Plan {
    std::vector<Step> steps;
    std::vector<std::string> blast_radius;  // "VFs 0-3 of enp1s0 are made anew"
    std::vector<std::string> notes;         // "MAC 02:… was chosen: none was given"
    bool operator==(Plan const&) const = default;
};
// {"steps": [{…, "sentence": …}], "blast_radius": [], "notes": []}
template <>
void Json<Plan>::write(nlohmann::json& out, Plan const& plan);

// Plans the PF as `spec` requests it: the number of VFs, and the driver of the unused ones. Refuses
// when a VF that would go is in use, and names the VM.
[[nodiscard]] Result<Plan> plan_pf(HostView const& host, DesiredState const& desired,
                                   PciAddress const& pf, PfSpec const& spec);

// A PF with attachments or quarantines is not removed: cleaning them needs its stored state.
[[nodiscard]] Result<void> check_unused(DesiredState const& desired, PciAddress const& pf);

// Judges a network as a request wants it. It changes nothing on the host by itself, so the plan is
// empty. Refuses what its attachments depend on, PFs that can't carry it, and prefixes in use.
[[nodiscard]] Result<Plan> plan_network(HostView const& host, DesiredState const& desired,
                                        Network const& network);
[[nodiscard]] Result<Plan> plan_network_removal(DesiredState const& desired,
                                                std::string const& name);

// The same for a pool.
[[nodiscard]] Result<Plan> plan_pool(DesiredState const& desired, Pool const& pool);
[[nodiscard]] Result<Plan> plan_pool_removal(DesiredState const& desired, std::string const& name);

// A resolved attachment: which VF, MAC, address. `host_seed` makes chosen MACs unique to this host.
struct AttachmentPlan {
    Attachment attachment;
    PfBase base;  // of the PF, to be restored when its last attachment ends
    Plan plan;
};
// Without a PF in `spec`, chooses one: `attachment.candidates` says which were considered, and why
// each was taken or not. An Error says so in its detail.
[[nodiscard]] Result<AttachmentPlan> plan_attachment(HostView const& host,
                                                     DesiredState const& desired,
                                                     std::string const& id,
                                                     AttachmentSpec const& spec,
                                                     std::string_view host_seed);

// A resolved attachment to record what its VM has already: the <hostdev> at `spec.adopt`, which
// somebody else plugged in. No step unplugs it, and no setting of the VF is changed.
[[nodiscard]] Result<AttachmentPlan> plan_adoption(HostView const& host,
                                                   DesiredState const& desired,
                                                   std::string const& id,
                                                   AttachmentSpec const& spec);
// The id of an attachment that the <hostdev> is named after, while the store knows none of that id:
// it is older than the VM.
[[nodiscard]] std::optional<std::string> id_of_adopted(HostView const& host,
                                                       DesiredState const& desired,
                                                       AttachmentSpec const& spec);

// Attachments of one VM that begin together: all of them, or none.
struct AttachmentSetPlan {
    std::vector<Attachment> attachments;  // in the order of the request
    std::map<PciAddress, PfBase> bases;   // of their PFs
    Plan plan;                            // the kernel's steps first, then libvirt's
};
// Plans each after those before it. `ids`: one for each spec, of which there is at least one. An
// Error names the attachment, if there are several.
[[nodiscard]] Result<AttachmentSetPlan> plan_attachments(HostView const& host,
                                                         DesiredState const& desired,
                                                         std::vector<std::string> const& ids,
                                                         std::vector<AttachmentSpec> const& specs,
                                                         std::string_view host_seed);

// Plans a change of an attachment's settings while its VM has the VF: `attachment` is what it
// becomes, equal to `now` when nothing changes. Refuses what would interrupt the VM without its
// consent.
[[nodiscard]] Result<AttachmentPlan> plan_change(HostView const& host, DesiredState const& desired,
                                                 Attachment const& now,
                                                 AttachmentPatch const& patch,
                                                 std::string_view host_seed);
// Plans the way back from `now` to what the attachment was `before` a change.
[[nodiscard]] Result<Plan> plan_change_back(HostView const& host, DesiredState const& desired,
                                            Attachment const& now, Attachment const& before);

// Plans the detach: takes the VF out of the VM, resets it, restores its baseline, binds the driver
// of unused VFs if there is one, and removes the interface if no other attachment uses it.
[[nodiscard]] Result<Plan> plan_detach(HostView const& host, DesiredState const& desired,
                                       Attachment const& attachment);

// Facts noted during a detach that can't be observed once it is done.
struct DetachNotes {
    CertificateMark detached;
    VfSpec before;                      // as the driver reported the VF when the detach began
    std::optional<Time> reset_done_at;  // absent: the VF was not reset, since it was absent
    std::optional<VfCounters> counters;
};
// What the kernel shows of an attachment's VF when all steps of its detach are done.
struct DetachOutcome {
    std::vector<std::string> residue;        // of the attachment, a sentence each
    std::optional<Certificate> certificate;  // absent when there is residue, or the VF no longer
                                             // exists
};
[[nodiscard]] DetachOutcome detach_outcome(HostView const& after, Attachment const& attachment,
                                           DetachNotes const& notes);
// Finds the certificate of an attachment that ended; `events` are those of that attachment, the
// latest first. Otherwise returns not_found with the reason: the attachment still exists, its VF is
// in quarantine, its VF was gone, or there was no such attachment.
[[nodiscard]] Result<Certificate> find_certificate(DesiredState const& desired,
                                                   std::vector<Event> const& events,
                                                   std::string const& attachment);

// Plans the restore at boot: VFs, settings, bindings and interfaces of all attachments, before
// libvirt runs. Kernel steps only.
[[nodiscard]] Result<Plan> plan_restore(HostView const& host, DesiredState const& desired,
                                        PciAddress const& pf);

// Plans the repair of drift, in mode `enforce`: makes the PF's VFs again where some are missing,
// and repairs their settings, their drivers and the host interfaces. Kernel steps only. Makes no
// VFs anew while any is in use, and names the user: in the notes, or as the Error when nothing else
// can be repaired.
[[nodiscard]] Result<Plan> plan_repair(HostView const& host, DesiredState const& desired,
                                       PciAddress const& pf);
// Plans the binding of VFs that libvirt bound to the host's driver when their VMs stopped: they
// were plugged in by somebody else (managed='yes') and adopted since. In mode `manage`; plan_repair
// does it, too.
[[nodiscard]] Result<Plan> plan_rebinding(HostView const& host, DesiredState const& desired,
                                          PciAddress const& pf);
// Plans the repair of a flushed host filter that the attachments need, in every mode that attaches
// VFs. Empty when all of the filter is in place.
[[nodiscard]] Result<Plan> plan_closing(HostView const& host, DesiredState const& desired,
                                        PciAddress const& pf);
// Plans the return of an attachment's VF to its VM, once the VF exists and has the attachment's
// driver; empty before that.
[[nodiscard]] Result<Plan> plan_return(HostView const& host, Attachment const& attachment);

// Returns what undoes `step`, from the state observed before it; empty when there is nothing to
// undo. A step that was only intended may or may not have happened: the inverse is correct either
// way.
[[nodiscard]] std::vector<Step> inverse(Step const& step, HostView const& before);

// A VF of `pf` in use, with the reason in the words of an error's detail.
struct VfUse {
    VfId vf;
    std::string reason;  // "in the running VM vm1", "held open by qemu-system-x86 (pid 812)"
    std::string config_of = {};  // UUID of the VM whose persistent XML names it; for that use only
    std::string reservation = {};  // that keeps it; for that use only
};
[[nodiscard]] std::vector<VfUse> vf_uses(HostView const& host, DesiredState const& desired,
                                         PciAddress const& pf);
// Binds the unused VFs of `pf` that do not have the driver that `spec` names for them; nothing when
// all have it, or none is named.
[[nodiscard]] std::optional<BindVfs> bind_unused(HostView const& host, DesiredState const& desired,
                                                 PfState const& pf, PfSpec const& spec);

}  // namespace vfmgr
