// SPDX-License-Identifier: Apache-2.0
// The life of an attachment: attach, prove, detach. Straight-line code on the operation's thread.
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

ClaimKeys keys(PciAddress const& pf, std::string const& vm_uuid) {
    return {pf, VmKey{vm_uuid}};
}

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

Error in_quarantine(Failure const& failure, VfId const& vf) {
    auto error = failure.error;
    error.detail += fmt::format("; undoing it failed: {}", fmt::join(failure.residue, "; "));
    error.remedy = "the VF is in quarantine: " + lift_it(vf);
    return error;
}

Error not_clean(Attachment const& attachment, std::vector<std::string> const& residue) {
    return {Problem::kernel_refused,
            fmt::format("VF {}, detached from VM {}, is in quarantine: {}",
                        to_string(attachment.vf), attachment.vm, fmt::join(residue, "; ")),
            lift_it(attachment.vf)};
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

// A request without a PF gets the best one of the published view.
Result<PciAddress> Attachments::pf_for(std::string const& id, AttachmentSpec const& spec) {
    if (spec.pf) return *spec.pf;
    auto const host = seams().control.snapshot().host;
    return seams().control.wait([&](Control::State& state) -> Result<PciAddress> {
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        VFMGR_TRY(auto const planned, plan_attachment(*host, state.desired(), id, spec, seed));
        return planned.attachment.vf.pf;
    });
}

// Plans under the claims from a fresh view; the attachment is durable before anything is touched.
// False: another PF is the better one by now.
Result<bool> Attachments::begin_attachment(Operation& operation, std::string const& id,
                                           AttachmentSpec const& spec, std::string const& tenant,
                                           PciAddress const& claimed, Begun& begun) {
    auto const span = timed(SpanKind::plan, "plan, and store the attachment");
    return seams().control.wait([&](Control::State& state) -> Result<bool> {
        tidy_reservations(state, seams().clock.now());
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        auto const& host = begun.host;
        VFMGR_TRY(AttachmentPlan planned, plan_attachment(host, state.desired(), id, spec, seed));
        VFMGR_CHECK(permit_begin(state, tenant, planned.attachment));
        VFMGR_CHECK(operations_.check_bounds(host, planned.plan));
        auto const& pci = planned.attachment.vf.pf;
        if (pci != claimed) return false;
        planned.attachment.created_at = seams().clock.now();
        planned.attachment.operation = operation.id;
        planned.attachment.requested_by = operation.requested_by;
        auto pf = state.desired().pfs.at(pci);
        pf.base = planned.base;
        operation.steps = planned_steps(planned.plan);
        operation.state = OperationState::running;
        Batch batch;
        batch.save_pfs.emplace_back(pci, std::move(pf));
        keep_identity(batch, host.kernel, state.desired(), pci);
        batch.save_attachments.push_back(planned.attachment);
        begun.first = intend_first(operation, planned.plan, host, batch);
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(batch));
        begun.planned = std::move(planned);
        return true;
    });
}

Result<Attachments::Begun> Attachments::begin(Operation& operation, std::string const& id,
                                              AttachmentSpec const& spec,
                                              std::string const& tenant) {
    constexpr int tries_max = 8;
    auto const admitted = seams().control.snapshot();
    auto const* const vm = find_vm(*admitted.host, spec.vm);
    for (int tries = 0; tries < tries_max; ++tries) {
        VFMGR_TRY(auto const pf, pf_for(id, spec));
        VFMGR_TRY(auto claim, operations_.claim(operation, keys(pf, vm ? vm->uuid : spec.vm)));
        VFMGR_TRY(HostView host, observe_for(seams(), pf));
        Begun begun{std::move(claim), {}, std::move(host), {}};
        VFMGR_TRY(bool const has_begun, begin_attachment(operation, id, spec, tenant, pf, begun));
        if (has_begun) return begun;
    }
    return fail(
        Problem::conflict,
        fmt::format("VFs for VM {} were taken by others as soon as they were chosen", spec.vm),
        "try again, or name the PF");
}

void Attachments::attach(Operation& operation, std::string const& id, AttachmentSpec const& wanted,
                         std::string const& tenant) {
    Attachment attachment;
    bool to_prove = false;
    {
        auto begun = begin(operation, id, wanted, tenant);
        if (!begun) return operations_.finish(operation, fail(begun.error()), {});
        auto& planned = begun->planned;
        attachment = planned.attachment;
        auto& steps = planned.plan.steps;
        // Waits for the guest without the claims: other operations may use the PF meanwhile.
        to_prove = !steps.empty() && as<AwaitVerification>(steps.back());
        if (to_prove) steps.pop_back();
        auto const done = execute(seams(), operation, planned.plan, OnFailure::undo,
                                  PlannedFrom{begun->host, std::move(begun->first)});
        if (!done && done.error().residue.empty()) {
            auto batch = without(attachment);
            batch.save_events.push_back(event_of(EventKind::attach_failed, attachment, &operation,
                                                 done.error().error.detail, seams().clock.now()));
            return operations_.finish(operation, fail(done.error().error), std::move(batch));
        }
        if (!done)
            return operations_.finish(
                operation, fail(in_quarantine(done.error(), attachment.vf)),
                quarantined(attachment, "an attach failed and could not be undone",
                            done.error().residue));
        attachment.state = AttachmentState::attached;
        Batch batch;
        batch.save_attachments.push_back(attachment);
        batch.save_events.push_back(event_of(EventKind::attached, attachment, &operation,
                                             "has " + settings_sentence(attachment.settings),
                                             seams().clock.now()));
        if (!to_prove)
            operations_.finish(operation, {}, std::move(batch));
        else if (!operations_.commit_at_last(batch))
            return;
    }
    auto const& spec = attachment.spec;
    Verify const verify{
        id, spec.verify_timeout_seconds, spec.verify_profile.value_or(Profile::default_), {}};
    if (!to_prove) {
        if (spec.verify == VerifyMode::background) submit_(verify, operation.requested_by);
        return;
    }
    operations_.places().rest(operation.id);
    auto const proved = runs_.prove(operation, verify);
    operations_.places().resume(operation.id);
    if (proved) return operations_.finish(operation, {}, {});
    if (operations_.stopping()) return;  // the journal still has it: recovery detaches the VF
    auto const back = detach_held(operation, attachment);
    auto outcome = proved.error();
    if (!back) outcome.detail += "; and " + back.error().detail;
    operations_.finish(operation, fail(std::move(outcome)), {});
}

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
    bool keeps_it = false;
    if (done) {
        notes.reset_done_at = done->reset_done_at;
        notes.counters = done->counters;
        auto const [residue, certificate] =
            observe_detached(attachment, notes, std::move(done->left));
        operation.certificate = certificate;
        end = residue.empty() ? without(attachment) : quarantined(attachment, "not clean", residue);
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
        keeps_it = true;  // the VM kept the device: the attachment goes on
    } else {
        auto residue = left_undone(operation);
        std::ranges::copy(done.error().residue, std::back_inserter(residue));
        end = quarantined(attachment, done.error().error.detail, std::move(residue));
    }
    if (!done) outcome = fail(done.error().error);
    end.save_operations.push_back(operation);
    seams().control.wait([&](Control::State& state) { return state.erase_run(attachment.id); });
    auto const ended = [&](DesiredState const& now) {
        auto batch = end;
        if (keeps_it) save_as(AttachmentState::attached, attachment.id, now, batch);
        return batch;
    };
    if (!operations_.commit_at_last(ended)) return fail(vfmgrd_stops());
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

// Detaches, unless another operation already has.
Result<void> Attachments::detach_held(Operation& operation, Attachment const& attached) {
    auto const claim = operations_.claims().take(keys(attached.vf.pf, attached.vm_uuid));
    auto const desired = seams().control.snapshot().desired;
    auto const attachment = desired->attachments.find(attached.id);
    if (attachment == desired->attachments.end()) return {};
    return perform_detach(operation, attachment->second);
}

void Attachments::detach(Operation& operation, std::string const& id) {
    auto const before = seams().control.snapshot().desired;
    auto const found = before->attachments.find(id);
    if (found == before->attachments.end())
        return operations_.finish(operation, fail(no_such_attachment(id)), {});
    auto const claim = operations_.claims().take(keys(found->second.vf.pf, found->second.vm_uuid));
    // Another detach may have been ahead in the queue.
    auto const desired = seams().control.snapshot().desired;
    auto const attachment = desired->attachments.find(id);
    if (attachment == desired->attachments.end())
        return operations_.finish(operation, fail(no_such_attachment(id)), {});
    operations_.finish(operation, perform_detach(operation, attachment->second), {});
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
    auto const claim = operations_.claims().take(keys(vf.pf, had_it.vm_uuid));
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
    operations_.finish(operation, runs_.prove(operation, command, *remote), {});
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

Batch Attachments::without(Attachment const& attachment) const {
    Batch batch;
    batch.erase_attachments.push_back(attachment.id);
    auto const desired = seams().control.snapshot().desired;
    bool last = true;
    for (auto const& [id, other] : desired->attachments)
        if (id != attachment.id && other.vf.pf == attachment.vf.pf) last = false;
    for (auto const& [vf, quarantine] : desired->quarantine)
        if (vf != attachment.vf && vf.pf == attachment.vf.pf) last = false;
    auto const pf = desired->pfs.find(attachment.vf.pf);
    if (last && pf != desired->pfs.end()) {
        auto plain = pf->second;
        plain.base.reset();
        batch.save_pfs.emplace_back(attachment.vf.pf, std::move(plain));
    }
    return batch;
}

Batch Attachments::quarantined(Attachment const& attachment, std::string reason,
                               std::vector<std::string> residue) const {
    Batch batch;  // not without(): lifting the quarantine restores the PF's links, too
    batch.erase_attachments.push_back(attachment.id);
    batch.save_events.push_back(event_of(EventKind::quarantined, attachment, nullptr,
                                         fmt::format("{}: {}", reason, fmt::join(residue, "; ")),
                                         seams().clock.now()));
    batch.save_quarantines.push_back(
        {attachment.vf, attachment, std::move(reason), std::move(residue), seams().clock.now()});
    return batch;
}

}  // namespace vfmgr
