// SPDX-License-Identifier: Apache-2.0
// Changes an attachment while its VM has the VF. The store has the new settings from the moment
// when the kernel has all of them: until then the journal undoes what was begun.
#include <fmt/format.h>

#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/engine/timing.hpp"

namespace vfmgr {
namespace {

// Saves what the change decides, in the attachment as it is now: a guest's report changes it
// without a claim. A verdict over other settings proves nothing of these; the history keeps it.
void save_changed(Batch& batch, DesiredState const& now, Attachment const& changed) {
    auto const found = now.attachments.find(changed.id);
    if (found == now.attachments.end()) return;
    auto attachment = found->second;
    if (attachment.settings != changed.settings) attachment.verification.reset();
    attachment.spec = changed.spec;
    attachment.settings = changed.settings;
    attachment.baseline = changed.baseline;
    batch.save_attachments.push_back(std::move(attachment));
}

// With the end of the journal: from here on the new settings stand.
Batch stored_change(DesiredState const& now, Operation const& operation, Attachment const& changed,
                    Time at) {
    Batch batch;
    save_changed(batch, now, changed);
    batch.save_events.push_back(event_of(EventKind::attachment_changed, changed, &operation,
                                         "has " + settings_sentence(changed.settings), at));
    batch.erase_records_of.push_back(operation.id);
    return batch;
}

Error left_mixed(Failure const& failure) {
    auto error = failure.error;
    if (!failure.residue.empty())
        error.detail += fmt::format("; undoing it failed: {}", fmt::join(failure.residue, "; "));
    return error;
}

}  // namespace

// Plans under the claims from a fresh view; `before` is the attachment as it is then.
Result<Attachments::Begun<AttachmentPlan>> Attachments::begin_change(
    Operation& operation, ChangeAttachment const& command, IfMatch const& if_match,
    std::string const& tenant, Attachment& before) {
    auto const& id = command.attachment;
    auto const admitted = seams().control.snapshot().desired;
    auto const known = admitted->attachments.find(id);
    if (known == admitted->attachments.end()) return fail(no_such_attachment(id));
    VFMGR_TRY(auto claim, operations_.claim(operation, claims_on(known->second)));
    VFMGR_TRY(HostView host, observe_for(seams(), known->second.vf.pf));
    auto const span = timed(SpanKind::plan, "plan the change");
    std::optional<JournalRecord> first;
    auto planned = seams().control.wait([&](Control::State& state) -> Result<AttachmentPlan> {
        auto const now = state.desired().attachments.find(id);
        if (now == state.desired().attachments.end()) return fail(no_such_attachment(id));
        VFMGR_CHECK(check_revision(revision_of(now->second, tenant), "attachment " + id, if_match));
        VFMGR_CHECK(permit_change(state, host, tenant, command, seams().clock.now()));
        before = now->second;
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        VFMGR_TRY(AttachmentPlan plan,
                  plan_change(host, state.desired(), before, command.patch, seed));
        VFMGR_CHECK(operations_.check_bounds(host, plan.plan));
        operation.steps = planned_steps(plan.plan);
        operation.state = OperationState::running;
        Batch batch;
        first = intend_first(operation, plan.plan, host, batch);
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(std::move(batch)));
        state.pledge(operation.id, {plan.attachment.settings});
        return plan;
    });
    if (!planned) return fail(planned.error());
    return Begun<AttachmentPlan>{std::move(claim), std::move(*planned), std::move(host),
                                 std::move(first)};
}

void Attachments::change(Operation& operation, ChangeAttachment const& command,
                         IfMatch const& if_match, std::string const& tenant) {
    Attachment before;
    Attachment changed;
    bool to_prove = false;
    {
        auto begun = begin_change(operation, command, if_match, tenant, before);
        if (!begun) return operations_.finish(operation, fail(begun.error()), {});
        changed = begun->planned.attachment;
        auto& plan = begun->planned.plan;
        // Waits for the guest without the claims: other operations may use the PF meanwhile.
        to_prove = !plan.steps.empty() && as<AwaitVerification>(plan.steps.back());
        if (to_prove) plan.steps.pop_back();
        auto const done = execute(seams(), operation, plan, OnFailure::undo,
                                  PlannedFrom{begun->host, std::move(begun->first)});
        if (!done) return operations_.finish(operation, fail(left_mixed(done.error())), {});
        auto const stored = [&](DesiredState const& now) {
            return stored_change(now, operation, changed, seams().clock.now());
        };
        if (!to_prove)
            operations_.finish(operation, [&](DesiredState const& now) {
                return Operations::End{{}, stored(now)};
            });
        else if (!operations_.commit_at_last(stored))
            return;
    }
    auto const& patch = command.patch;
    Verify const verify{
        changed.id,
        patch.verify_timeout_seconds.value_or(changed.spec.verify_timeout_seconds),
        patch.verify_profile.value_or(changed.spec.verify_profile.value_or(Profile::default_)),
        {}};
    if (to_prove)
        prove_change(operation, verify, before, changed);
    else if (patch.verify == VerifyMode::background && changed != before)
        submit_(verify, operation.requested_by);
}

// Changes the attachment back if RDMA is not proved with its new settings.
void Attachments::prove_change(Operation& operation, Verify const& command,
                               Attachment const& before, Attachment const& changed) {
    operations_.places().rest(operation.id);
    auto const proved = runs_.prove(operation, {command});
    operations_.places().resume(operation.id);
    if (proved) return operations_.finish(operation, {}, {});
    if (operations_.stopping()) return;  // recovery ends it: the new settings stand
    auto outcome = proved.error();
    if (auto const back = change_back(operation, before, changed); !back)
        outcome.detail += fmt::format("; and the earlier settings could not be set again: {}",
                                      back.error().detail);
    else
        outcome.detail += "; the VF has its earlier settings again";
    operations_.finish(operation, fail(std::move(outcome)), {});
}

Result<void> Attachments::change_back(Operation& operation, Attachment const& before,
                                      Attachment const& changed) {
    auto const claim = operations_.claims().take(claims_on(before));
    auto const desired = seams().control.snapshot().desired;
    auto const now = desired->attachments.find(before.id);
    if (now == desired->attachments.end()) return fail(no_such_attachment(before.id));
    if (now->second.settings != changed.settings || now->second.spec != changed.spec)
        return fail(changed_meanwhile(changed));
    VFMGR_TRY(HostView const host, observe_for(seams(), before.vf.pf));
    VFMGR_TRY(Plan const plan, plan_change_back(host, *desired, now->second, before));
    operation.steps = planned_steps(plan);
    auto const uncancelled = [&] {
        auto all = seams();
        all.cancellations = nullptr;  // the operation may be on its way back for that
        return all;
    }();
    auto const done = execute(uncancelled, operation, plan, OnFailure::undo, PlannedFrom{host, {}});
    if (!done) return fail(left_mixed(done.error()));
    auto const stored = [&](DesiredState const& state) {
        return stored_change(state, operation, before, seams().clock.now());
    };
    if (!operations_.commit_at_last(stored)) return fail(vfmgrd_stops());
    return {};
}

}  // namespace vfmgr
