// SPDX-License-Identifier: Apache-2.0
// The end of an attachment, and its proofs. Straight-line code on the operation's thread.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/stored.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/engine/timing.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

// Saves the attachment as it is now, because a guest's report changes it without a claim.
void save_as(AttachmentState state, std::string const& id, DesiredState const& now, Batch& batch) {
    auto const attachment = now.attachments.find(id);
    if (attachment == now.attachments.end()) return;
    batch.save_attachments.push_back(attachment->second);
    batch.save_attachments.back().state = state;
}

// Returns the steps that a detach had not done when it failed: what is left to be cleaned.
std::vector<std::string> left_undone(Operation const& operation) {
    std::vector<std::string> residue;
    for (auto const& step : operation.steps)
        if (step.state != StepState::done) residue.push_back(step.sentence);
    return residue;
}

std::string lift_it(VfId const& vf) {
    return fmt::format("fix it, then: vfctl vf lift-quarantine {} {}", to_string(vf.pf), vf.index);
}

Error not_clean(Attachment const& attachment, std::vector<std::string> const& residue) {
    return {Problem::kernel_refused,
            fmt::format("VF {}, detached from VM {}, is in quarantine: {}",
                        to_string(attachment.vf), attachment.vm, fmt::join(residue, "; ")),
            lift_it(attachment.vf)};
}

Error still_held(Attachment const& attachment, Error error) {
    if (error.problem != Problem::vf_in_use) return error;
    error.remedy =
        fmt::format("end that process: the VF is then detached by itself, or by vfctl detach {}",
                    attachment.id);
    return error;
}

// The VM has no router: the responder it tests against must be in its own network.
Result<void> check_reach(DesiredState const& desired, Attachment const& attachment,
                         ResponderInfo const& info) {
    auto const carried = network_of(desired.networks, attachment);
    auto const* const network = carried ? carried->network : nullptr;
    if (network && network->prefix.contains(info.address)) return {};
    return fail(
        Problem::invalid_request,
        fmt::format(
            "the responder answers at {}, which is not in the VM's network{}",
            to_string(info.address),
            network ? fmt::format(" {} ({})", network->name, to_string(network->prefix)) : ""),
        "serve it with an address of that network: vf-guest serve --address …");
}

}  // namespace

// Plans the detach from a fresh view, and does it. The attachment ends, or its VF is quarantined.
Result<void> Attachments::perform_detach(Operation& operation, Attachment const& attachment) {
    DetachNotes notes{{seams().clock.now(), operation.id, operation.requested_by}, {}, {}, {}};
    VFMGR_TRY(HostView host, observe_for(seams(), attachment.vf.pf));
    if (auto const* vf = find_vf(host, attachment.vf)) notes.before = vf->settings;
    VFMGR_TRY(Plan plan, plan_detach(host, *seams().control.snapshot().desired, attachment));
    operation.steps = planned_steps(plan);
    operation.state = OperationState::running;
    bool const known = seams().control.snapshot().desired->attachments.contains(attachment.id);
    std::optional<JournalRecord> first;
    auto const begin = [&](DesiredState const& now) {
        Batch batch;
        batch.erase_records_of.push_back(operation.id);
        first = intend_first(operation, plan, host, batch);
        batch.save_operations.push_back(operation);
        save_as(AttachmentState::detaching, attachment.id, now, batch);
        return batch;
    };
    if (!operations_.commit_at_last(begin)) return fail(vfmgrd_stops());
    auto done =
        execute(seams(), operation, plan, OnFailure::stop, PlannedFrom{host, std::move(first)});
    Batch end;
    Result<void> outcome;
    if (done) {
        notes.reset_done_at = done->reset_done_at;
        notes.counters = done->counters;
        auto const [residue, certificate] =
            observe_detached(attachment, notes, std::move(done->left));
        operation.certificate = certificate;
        end = residue.empty() ? without({attachment})
                              : quarantined({attachment}, "not clean", residue);
        if (residue.empty()) {
            end.erase_quarantines.push_back(attachment.vf);
            auto returned = event_of(EventKind::detached, attachment, &operation,
                                     certificate ? "reset and verified clean" : "the VF is gone",
                                     seams().clock.now());
            returned.certificate = certificate;
            end.save_events.push_back(std::move(returned));
        } else {
            outcome = fail(not_clean(attachment, residue));
        }
    } else if (known && as<DetachHostdev>(done.error().step)) {
        // It stays `detaching`, and Endings ends it when the VM has released the device.
        end.save_events.push_back(
            event_of(EventKind::detach_failed, attachment, &operation,
                     fmt::format("VM {} kept VF {}", attachment.vm, to_string(attachment.vf)),
                     seams().clock.now()));
        outcome = fail(done.error().error);
    } else if (known && as<DetachExternal>(done.error().step)) {
        // A process still holds it: the attachment stays `detaching`, as well.
        outcome = fail(still_held(attachment, done.error().error));
    } else {
        auto residue = left_undone(operation);
        std::ranges::copy(done.error().residue, std::back_inserter(residue));
        end = quarantined({attachment}, done.error().error.detail, residue);
        outcome = fail(done.error().error);
    }
    end.save_operations.push_back(operation);
    seams().control.wait([&](Control::State& state) { return state.erase_run(attachment.id); });
    if (!operations_.commit_at_last(end)) return fail(vfmgrd_stops());
    return outcome;
}

// All steps reported success: observes on the host what they achieved.
DetachOutcome Attachments::observe_detached(Attachment const& attachment, DetachNotes const& notes,
                                            KernelView left) const {
    auto after = left.pfs.contains(attachment.vf.pf) ? Result<KernelView>(std::move(left))
                                                     : observe_kernel(seams(), attachment.vf.pf);
    if (!after) return {{"the VF can't be read: " + after.error().detail}, {}};
    return detach_outcome(HostView{std::move(*after), {}}, attachment, notes);
}

// Detaches those that no other operation has detached meanwhile, one after the other: a guest that
// keeps its VF keeps no other in its VM.
Result<bool> Attachments::detach_each(Operation& operation,
                                      std::vector<Attachment> const& attached) {
    ClaimKeys claimed;
    for (auto const& one : attached) claimed.merge(claims_on(one));
    auto const claim = operations_.claims().take(std::move(claimed));
    std::vector<OperationStep> steps;
    std::vector<std::string> kept;
    std::optional<Error> first;
    bool any = false;
    for (auto const& one : attached) {
        auto const desired = seams().control.snapshot().desired;
        auto const attachment = desired->attachments.find(one.id);
        if (attachment == desired->attachments.end()) continue;
        any = true;
        operation.certificate.reset();
        auto const done = perform_detach(operation, attachment->second);
        std::ranges::move(operation.steps, std::back_inserter(steps));
        if (done) continue;
        kept.push_back(fmt::format("{}: {}", one.id, done.error().detail));
        if (!first) first = done.error();
    }
    operation.steps = std::move(steps);
    if (!first) return any;
    if (attached.size() > 1)
        first->detail = fmt::format("{} of {} attachments were not detached: {}", kept.size(),
                                    attached.size(), fmt::join(kept, "; "));
    return fail(std::move(*first));
}

void Attachments::detach(Operation& operation, std::vector<std::string> const& ids) {
    auto const before = seams().control.snapshot().desired;
    std::vector<Attachment> attached;
    for (auto const& id : ids) {
        auto const found = before->attachments.find(id);
        if (found == before->attachments.end())
            return operations_.finish(operation, fail(no_such_attachment(id)), {});
        attached.push_back(found->second);
    }
    auto const any = detach_each(operation, attached);
    if (!any) return operations_.finish(operation, fail(any.error()), {});
    operations_.finish(operation, *any ? Result<void>() : fail(no_such_attachment(ids.front())),
                       {});
}

void Attachments::lift(Operation& operation, VfId const& vf) {
    auto const over = [&] {
        operations_.finish(operation, fail(Problem::not_found, "the VF is no longer in quarantine"),
                           {});
    };
    auto const before = seams().control.snapshot().desired;
    auto const found = before->quarantine.find(vf);
    if (found == before->quarantine.end()) return over();
    auto const& had_it = found->second.attachment;
    auto const claim = operations_.claims().take(claims_on(had_it));
    // Another lift may have been ahead in the queue, and the VF may be attached again.
    auto const desired = seams().control.snapshot().desired;
    auto const quarantine = desired->quarantine.find(vf);
    if (quarantine == desired->quarantine.end()) return over();
    operations_.finish(operation, perform_detach(operation, quarantine->second.attachment), {});
}

void Attachments::verify(Operation& operation, Verify const& command) {
    operation.state = OperationState::running;
    auto const remote = remote_end(command);
    if (!remote) {
        operation.steps.back().state = StepState::failed;
        return operations_.finish(operation, fail(remote.error()), {});
    }
    operations_.finish(operation, runs_.prove(operation, {command}, *remote), {});
}

// Queries the responder before the VM: a fault of the responder does not concern the VM.
Result<std::optional<RemoteEnd>> Attachments::remote_end(Verify const& request) const {
    if (!request.responder) return std::nullopt;
    if (!ask_responder_)
        return fail(Problem::unsupported, "this daemon uses no responders of other hosts",
                    "leave the responder out");
    VFMGR_TRY(auto const info, ask_responder_(*request.responder));
    auto const now = seams().control.snapshot();
    auto const attachment = now.desired->attachments.find(request.attachment);
    if (attachment == now.desired->attachments.end())
        return fail(no_such_attachment(request.attachment));
    VFMGR_CHECK(check_reach(*now.desired, attachment->second, info));
    return RemoteEnd{*request.responder, info, path_to(info.mac, *now.host)};
}

Batch Attachments::without(std::vector<Attachment> const& ended) const {
    Batch batch;
    auto const desired = seams().control.snapshot().desired;
    std::set<std::string> ids;
    std::set<VfId> vfs;
    std::set<PciAddress> unused;
    for (auto const& one : ended) {
        batch.erase_attachments.push_back(one.id);
        ids.insert(one.id);
        vfs.insert(one.vf);
        unused.insert(one.vf.pf);
    }
    for (auto const& [id, other] : desired->attachments)
        if (!ids.contains(id)) unused.erase(other.vf.pf);
    for (auto const& [vf, quarantine] : desired->quarantine)
        if (!vfs.contains(vf)) unused.erase(vf.pf);
    for (auto const& pci : unused) {
        auto const pf = desired->pfs.find(pci);
        if (pf == desired->pfs.end()) continue;
        auto plain = pf->second;
        plain.base.reset();
        batch.save_pfs.emplace_back(pci, std::move(plain));
    }
    return batch;
}

Batch Attachments::quarantined(std::vector<Attachment> const& attachments,
                               std::string const& reason,
                               std::vector<std::string> const& residue) const {
    Batch batch;  // not without(): lifting the quarantine restores the PF's links, too
    for (auto const& one : attachments) {
        batch.erase_attachments.push_back(one.id);
        batch.save_events.push_back(
            event_of(EventKind::quarantined, one, nullptr,
                     fmt::format("{}: {}", reason, fmt::join(residue, "; ")), seams().clock.now()));
        batch.save_quarantines.push_back({one.vf, one, reason, residue, seams().clock.now()});
    }
    return batch;
}

}  // namespace vfmgr
