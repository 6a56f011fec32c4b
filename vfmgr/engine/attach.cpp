// SPDX-License-Identifier: Apache-2.0
// Attachments begin: planned, performed and proved together, all or none. Straight-line code on the
// operation's thread.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/stored.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/engine/timing.hpp"
#include "vfmgr/plan/external.hpp"

namespace vfmgr {
namespace {

std::set<PciAddress> pfs_of(std::vector<Attachment> const& attachments) {
    std::set<PciAddress> pfs;
    for (auto const& one : attachments) pfs.insert(one.vf.pf);
    return pfs;
}

Error in_quarantine(Failure const& failure, std::vector<Attachment> const& attachments) {
    auto error = failure.error;
    error.detail += fmt::format("; undoing it failed: {}", fmt::join(failure.residue, "; "));
    std::vector<std::string> lifts;
    for (auto const& one : attachments)
        lifts.push_back(
            fmt::format("vfctl vf lift-quarantine {} {}", to_string(one.vf.pf), one.vf.index));
    error.remedy =
        fmt::format("the {} in quarantine: fix it, then: {}",
                    attachments.size() == 1 ? "VF is" : "VFs are", fmt::join(lifts, "; "));
    return error;
}

Verify verify_as_requested(Attachment const& attachment) {
    auto const& spec = attachment.spec;
    return {attachment.id,
            spec.verify_timeout_seconds,
            spec.verify_profile.value_or(Profile::default_),
            {}};
}

bool is_required(Attachment const& attachment) {
    return attachment.spec.verify == VerifyMode::required;
}

// The VM had the VF before, and keeps it whatever fails here. An adoption is a request of its own.
bool is_adoption(std::vector<Attachment> const& attachments) {
    return attachments.front().spec.adopt.has_value();
}

}  // namespace

// A request without a PF gets the best one of the published view.
Result<std::set<PciAddress>> Attachments::pfs_for(Request const& request) {
    std::set<PciAddress> named;
    for (auto const& spec : request.specs)
        if (spec.pf) named.insert(*spec.pf);
    if (std::ranges::all_of(request.specs, [](auto const& spec) { return spec.pf.has_value(); }))
        return named;
    auto const host = seams().control.snapshot().host;
    return seams().control.wait([&](Control::State& state) -> Result<std::set<PciAddress>> {
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        VFMGR_TRY(auto const planned,
                  plan_attachments(*host, state.desired(), request.ids, request.specs, seed));
        return pfs_of(planned.attachments);
    });
}

// Plans under the claims from a fresh view; the attachments are durable before anything is touched.
// False: another PF is the better one by now.
Result<bool> Attachments::begin_attachments(Operation& operation, Request const& request,
                                            std::set<PciAddress> const& claimed,
                                            Begun<AttachmentSetPlan>& begun) {
    auto const span = timed(SpanKind::plan, "plan, and store the attachment");
    return seams().control.wait([&](Control::State& state) -> Result<bool> {
        tidy_reservations(state, seams().clock.now());
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        auto const& host = begun.host;
        VFMGR_TRY(auto planned,
                  plan_attachments(host, state.desired(), request.ids, request.specs, seed));
        VFMGR_CHECK(permit_begin(state, request.tenant, planned.attachments));
        VFMGR_CHECK(operations_.check_bounds(host, planned.plan));
        if (pfs_of(planned.attachments) != claimed) return false;
        operation.steps = planned_steps(planned.plan);
        operation.state = OperationState::running;
        Batch batch;
        for (auto const& [pci, base] : planned.bases) {
            auto pf = state.desired().pfs.at(pci);
            pf.base = base;
            batch.save_pfs.emplace_back(pci, std::move(pf));
            keep_identity(batch, host.kernel, state.desired(), pci);
        }
        for (auto& attachment : planned.attachments) {
            attachment.created_at = seams().clock.now();
            attachment.operation = operation.id;
            attachment.requested_by = operation.requested_by;
            batch.save_attachments.push_back(attachment);
        }
        begun.first = intend_first(operation, planned.plan, host, batch);
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(batch));
        begun.planned = std::move(planned);
        return true;
    });
}

Result<Attachments::Begun<AttachmentSetPlan>> Attachments::begin(Operation& operation,
                                                                 Request const& request) {
    constexpr int tries_max = 8;
    auto const& first = request.specs.front();
    auto const& wanted = receiver_of(first);  // that of all of them
    auto const admitted = seams().control.snapshot();
    auto const* const vm = find_vm(*admitted.host, first.vm);
    for (int tries = 0; tries < tries_max; ++tries) {
        VFMGR_TRY(auto const pfs, pfs_for(request));
        ClaimKeys keys(pfs.begin(), pfs.end());
        if (!first.holder) keys.insert(VmKey{vm ? vm->uuid : wanted});
        VFMGR_TRY(auto claim, operations_.claim(operation, std::move(keys)));
        // Several PFs are observed at the same time, each by its worker.
        auto const scope = pfs.size() == 1 ? KernelScope(*pfs.begin()) : std::nullopt;
        VFMGR_TRY(HostView host, observe_for(seams(), scope));
        Begun<AttachmentSetPlan> begun{std::move(claim), {}, std::move(host), {}};
        VFMGR_TRY(bool const has_begun, begin_attachments(operation, request, pfs, begun));
        if (has_begun) return begun;
    }
    return fail(
        Problem::conflict,
        fmt::format("VFs for VM {} were taken by others as soon as they were chosen", wanted),
        "try again, or name the PF");
}

// Under the claims. False: it ended here, or vfmgrd stops.
bool Attachments::perform_attach(Operation& operation, Begun<AttachmentSetPlan>& begun) {
    auto& [attachments, bases, plan] = begun.planned;
    // Waits for the guest without the claims: other operations may use the PFs meanwhile.
    bool const to_prove = std::ranges::any_of(attachments, is_required);
    std::erase_if(plan.steps, [](Step const& step) { return as<AwaitVerification>(step); });
    auto const done = execute(seams(), operation, plan, OnFailure::undo,
                              PlannedFrom{begun.host, std::move(begun.first)});
    if (!done) {
        end_failed_attach(operation, attachments, done.error());
        return false;
    }
    Batch batch;
    for (auto& attachment : attachments) {
        attachment.state = AttachmentState::attached;
        if (auto const owner = done->node_owners.find(attachment.vf);
            owner != done->node_owners.end())
            attachment.node_owner = owner->second;
        batch.save_attachments.push_back(attachment);
        batch.save_events.push_back(event_of(
            EventKind::attached, attachment, &operation,
            (attachment.spec.adopt ? "keeps " : "has ") + settings_sentence(attachment.settings),
            seams().clock.now()));
    }
    if (to_prove) return operations_.commit_at_last(batch);
    operations_.finish(operation, {}, std::move(batch));
    return true;
}

void Attachments::end_failed_attach(Operation& operation,
                                    std::vector<Attachment> const& attachments,
                                    Failure const& failure) {
    if (failure.residue.empty() || is_adoption(attachments)) {
        auto error = failure.error;
        if (!failure.residue.empty())
            error.detail += fmt::format("; still to do: {}", fmt::join(failure.residue, "; "));
        auto batch = without(attachments);
        for (auto const& one : attachments)
            batch.save_events.push_back(event_of(EventKind::attach_failed, one, &operation,
                                                 error.detail, seams().clock.now()));
        return operations_.finish(operation, fail(std::move(error)), std::move(batch));
    }
    // Which of the VFs is not as it was, a sentence of the residue says, and no value.
    operations_.finish(
        operation, fail(in_quarantine(failure, attachments)),
        quarantined(attachments, "an attach failed and could not be undone", failure.residue));
}

void Attachments::attach(Operation& operation, std::vector<std::string> const& ids,
                         std::vector<AttachmentSpec> const& specs, std::string const& tenant) {
    std::vector<Attachment> attachments;
    {
        auto begun = begin(operation, {ids, specs, tenant});
        if (!begun) return operations_.finish(operation, fail(begun.error()), {});
        if (!perform_attach(operation, *begun)) return;
        attachments = std::move(begun->planned.attachments);
    }
    prove_or_detach(operation, attachments);
}

void Attachments::prove_or_detach(Operation& operation,
                                  std::vector<Attachment> const& attachments) {
    std::vector<Verify> required;
    for (auto const& one : attachments)
        if (is_required(one)) required.push_back(verify_as_requested(one));
    if (!required.empty()) {
        operations_.places().rest(operation.id);
        auto const proved = runs_.prove(operation, required);
        operations_.places().resume(operation.id);
        if (!proved) {
            if (operations_.stopping()) return;  // recovery detaches the VFs
            auto outcome = proved.error();
            if (is_adoption(attachments)) {
                outcome.detail += "; the VM keeps the VF, and the attachment stands";
                return operations_.finish(operation, fail(std::move(outcome)), {});
            }
            if (auto const back = detach_each(operation, attachments); !back)
                outcome.detail += "; and " + back.error().detail;
            return operations_.finish(operation, fail(std::move(outcome)), {});
        }
        operations_.finish(operation, {}, {});
    }
    for (auto const& one : attachments)
        if (one.spec.verify == VerifyMode::background)
            submit_(verify_as_requested(one), operation.requested_by);
}

}  // namespace vfmgr
