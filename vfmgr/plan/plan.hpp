// SPDX-License-Identifier: Apache-2.0
// Planning is pure: no I/O, no clock, no log. Every refusal a user can meet is decided here.
#pragma once

#include <string>
#include <vector>

#include "api/types/certificate.hpp"
#include "api/types/history_event.hpp"
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
void to_json(nlohmann::json& out, Plan const& plan);

// The PF as `want` says: number of VFs, and the driver of those that nobody uses. Refuses when a VF
// that would go is in use, and names the VM.
[[nodiscard]] Result<Plan> plan_pf(HostView const& host, DesiredState const& desired,
                                   PciAddress const& pf, PfSpec const& want);

// A lease, resolved: which VF, MAC, address. `seed` makes chosen MACs unique to this host.
struct AttachmentPlan {
    Attachment attachment;
    PfBase base;  // of the PF, as it is to be put back when the last lease on it ends
    Plan plan;
};
[[nodiscard]] Result<AttachmentPlan> plan_attachment(HostView const& host,
                                                     DesiredState const& desired,
                                                     std::string const& id,
                                                     AttachmentSpec const& spec,
                                                     std::string_view host_seed);

// The VF back: out of the VM, reset, at baseline, unlent; and the leg gone if nobody else uses it.
[[nodiscard]] Result<Plan> plan_release(HostView const& host, DesiredState const& desired,
                                        Attachment const& attachment);

// What a release noted that can't be seen when it is done.
struct ReleaseNotes {
    LeaseMark released;
    VfSpec before;                      // as the driver reported the VF when the release began
    std::optional<Time> reset_done_at;  // absent: the VF was not reset, as it was not there
    std::optional<VfCounters> counters;
};
// What the kernel shows of a lease's VF when all steps of its release are done.
struct HandOver {
    std::vector<std::string> residue;        // of the lease, a sentence each
    std::optional<Certificate> certificate;  // absent where there is residue, or no VF any more
};
[[nodiscard]] HandOver hand_over(HostView const& after, Attachment const& lease,
                                 ReleaseNotes const& notes);
// Of a lease that ended; `events` are those of that lease, the latest first. Otherwise not_found,
// with why there is none: it goes on, its VF is in quarantine, its VF was gone, there was no such
// lease.
[[nodiscard]] Result<Certificate> find_certificate(DesiredState const& desired,
                                                   std::vector<HistoryEvent> const& events,
                                                   std::string const& attachment);

// Boot: VFs, settings, bindings and legs of everything lent, before libvirt runs. Kernel steps
// only.
[[nodiscard]] Result<Plan> plan_restore(HostView const& host, DesiredState const& desired,
                                        PciAddress const& pf);

// Drift put right, in mode `enforce`: its VFs made again where some are missing, what they were set
// to, their drivers and the host's legs. Kernel steps only. Makes no VFs anew while somebody has
// one, and names who: in the notes, or as the Error when nothing else can be put right.
[[nodiscard]] Result<Plan> plan_repair(HostView const& host, DesiredState const& desired,
                                       PciAddress const& pf);
// The host's filter as its leases need it, where somebody flushed it: in every mode that lends VFs.
// Nothing where all of it is there.
[[nodiscard]] Result<Plan> plan_closing(HostView const& host, DesiredState const& desired,
                                        PciAddress const& pf);
// And a lease's VF back in its VM, once it is there with the lease's driver; before: nothing.
[[nodiscard]] Result<Plan> plan_return(HostView const& host, Attachment const& lease);

// What undoes `step`, from what was seen before it; empty when there is nothing to undo. A step
// that was only intended may or may not have happened: the inverse holds either way.
[[nodiscard]] std::vector<Step> inverse(Step const& step, HostView const& before);

// VFs of `pf` that are used by somebody, with the reason, in the words of an error's detail.
struct VfUse {
    VfId vf;
    std::string reason;  // "in the running VM vm1", "held open by qemu-system-x86 (pid 812)"
    std::string config_of = {};  // UUID of the VM whose persistent XML names it; of that use only
};
[[nodiscard]] std::vector<VfUse> vf_uses(HostView const& host, DesiredState const& desired,
                                         PciAddress const& pf);
// The unused VFs of `pf` that have not the driver that `want` names for them; nothing where all
// have it, or none is named.
[[nodiscard]] std::optional<BindVfs> bind_unused(HostView const& host, DesiredState const& desired,
                                                 PfState const& pf, PfSpec const& want);

}  // namespace vfmgr
