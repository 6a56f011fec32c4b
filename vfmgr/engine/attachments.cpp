// SPDX-License-Identifier: Apache-2.0
// The life of an attachment: attach, prove, detach. Straight-line code on the operation's thread.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/remote_path.hpp"

namespace vfmgr {
namespace {

std::vector<std::string> keys(PciAddress const& pf, std::string const& vm_uuid) {
    return {"pf " + to_string(pf), "vm " + vm_uuid};
}

// Saves the attachment as it is now, because a guest's report changes it without a claim.
void save_as(AttachmentState state, std::string const& id, DesiredState const& now, Batch& batch) {
    auto const attachment = now.attachments.find(id);
    if (attachment == now.attachments.end()) return;
    batch.save_attachments.push_back(attachment->second);
    batch.save_attachments.back().state = state;
}

Error gone(std::string const& id) {
    return {Problem::not_found, fmt::format("attachment {} no longer exists", id),
            "no action is needed"};
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

Error with_residue(Failure const& failure, VfId const& vf) {
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

Error stopping() {
    return {Problem::unavailable, "vfmgrd is stopping", "try again when it runs"};
}

// The VM has no router: the responder it tests against must be in its own network.
Result<void> check_reach(DesiredState const& desired, Attachment const& attachment,
                         ResponderInfo const& info) {
    auto const pf = desired.pfs.find(attachment.vf.pf);
    auto const* network = pf == desired.pfs.end() || !attachment.spec.network
                              ? nullptr
                              : find_network(pf->second.spec, *attachment.spec.network);
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

Error failed_verification(Attachment const& attachment, Verification const& verification) {
    std::vector<std::string> failed;
    for (auto const& test : verification.tests)
        if (test.verdict != Verdict::pass)
            failed.push_back(
                fmt::format("{} {}: {}", test.name, enum_name(test.verdict), test.detail));
    auto why = verification.detail;
    if (why.empty()) why = fmt::format("{}", fmt::join(failed, "; "));
    return {Problem::guest_refused,
            fmt::format("RDMA over VF {} could not be proved from VM {}: {}",
                        to_string(attachment.vf), attachment.vm, why),
            verification.remedy.empty() ? "see the verification's tests for cause and remedy"
                                        : verification.remedy};
}

Error no_report(Attachment const& attachment, std::uint32_t timeout_seconds) {
    return {Problem::timed_out,
            fmt::format("VM {} did not report within {} s", attachment.vm, timeout_seconds),
            "check in the VM that vf-guest runs and reaches the host: vf-guest status"};
}

// Plans under the claims from a fresh view; the attachment is durable before anything is touched.
Result<AttachmentPlan> Engine::begin_attachment(Operation& operation, std::string const& id,
                                                AttachmentSpec const& spec) {
    VFMGR_TRY(HostView host, observe_for(seams_, spec.pf));
    return control_->wait([&](Control::State& state) -> Result<AttachmentPlan> {
        VFMGR_TRY(std::string const seed, state.store.host_seed());
        VFMGR_TRY(AttachmentPlan planned, plan_attachment(host, state.desired(), id, spec, seed));
        planned.attachment.created_at = clock_.now();
        planned.attachment.operation = operation.id;
        planned.attachment.requested_by = operation.requested_by;
        auto pf = state.desired().pfs.at(spec.pf);
        pf.base = planned.base;
        operation.steps = planned_steps(planned.plan);
        operation.state = OperationState::running;
        Batch batch;
        batch.save_pfs.emplace_back(spec.pf, std::move(pf));
        keep_identity(batch, host.kernel, state.desired(), spec.pf);
        batch.save_attachments.push_back(planned.attachment);
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(batch));
        return planned;
    });
}

void Engine::attach(Operation& operation, std::string const& id, AttachmentSpec const& spec) {
    auto const admitted = control_->snapshot();
    auto const* vm = find_vm(*admitted.host, spec.vm);
    Attachment attachment;
    bool to_prove = false;
    {
        auto const claim = claims_.take(keys(spec.pf, vm ? vm->uuid : spec.vm));
        auto planned = begin_attachment(operation, id, spec);
        if (!planned) return finish(operation, fail(planned.error()), {});
        attachment = planned->attachment;
        auto& steps = planned->plan.steps;
        // Waits for the guest without the claims: other operations may use the PF meanwhile.
        to_prove = !steps.empty() && as<AwaitVerification>(steps.back());
        if (to_prove) steps.pop_back();
        auto const done = execute(seams_, operation, planned->plan, OnFailure::undo);
        if (!done && done.error().residue.empty()) {
            auto batch = without(attachment);
            batch.save_events.push_back(event_of(EventKind::attach_failed, attachment, &operation,
                                                 done.error().error.detail));
            return finish(operation, fail(done.error().error), std::move(batch));
        }
        if (!done)
            return finish(operation, fail(with_residue(done.error(), attachment.vf)),
                          quarantined(attachment, "an attach failed and could not be undone",
                                      done.error().residue));
        attachment.state = AttachmentState::attached;
        Batch batch;
        batch.save_attachments.push_back(attachment);
        batch.save_events.push_back(event_of(EventKind::attached, attachment, &operation,
                                             "has " + settings_sentence(attachment.settings)));
        if (!to_prove)
            finish(operation, {}, std::move(batch));
        else if (!commit_at_last(batch))
            return;
    }
    if (!to_prove) {
        if (spec.verify == VerifyMode::background)
            submit(Verify{id, spec.verify_timeout_seconds, spec.verify_profile, {}},
                   Intent{false, operation.requested_by, {}, {}, {}}, [](Result<Answer> const&) {});
        return;
    }
    places_.rest(operation.id);
    auto const proved =
        prove(operation, {id, spec.verify_timeout_seconds, spec.verify_profile, {}});
    places_.resume(operation.id);
    if (proved) return finish(operation, {}, {});
    if (stopping_) return;  // the journal still has it: recovery detaches the VF
    auto const back = detach_held(operation, attachment);
    auto outcome = proved.error();
    if (!back) outcome.detail += "; and " + back.error().detail;
    finish(operation, fail(std::move(outcome)), {});
}

// Starts a run and waits for its verdict, which comes from the host or from `remote`.
Result<void> Engine::prove(Operation& operation, Verify const& request,
                           std::optional<RemoteEnd> const& remote) {
    auto const& id = request.attachment;
    if (!operation.steps.empty()) operation.steps.back().state = StepState::intended;
    auto const run = random_hex(8);
    auto const started = control_->wait([&](Control::State& state) -> Result<Attachment> {
        auto const attachment = state.desired().attachments.find(id);
        if (attachment == state.desired().attachments.end()) return fail(gone(id));
        VFMGR_CHECK(write_verdict(state, id));
        Batch batch;
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(batch));
        auto const now = clock_.now();
        start_run(state, id,
                  {run, random_hex(16), now, now + std::chrono::seconds(request.timeout_seconds),
                   request.profile, remote});
        return attachment->second;
    });
    if (!started) return fail(started.error());
    auto const report = await_report(id, run, request.timeout_seconds);
    if (!report) {
        operation.steps.back().state = StepState::failed;
        return fail(report.error());
    }
    bool const passed = report->verdict == Verdict::pass;
    operation.steps.back().state = passed ? StepState::done : StepState::failed;
    if (!passed) return fail(failed_verification(*started, *report));
    return {};
}

Result<Verification> Engine::await_report(std::string const& id, std::string const& run,
                                          std::uint32_t timeout_seconds) {
    auto answer = std::make_shared<std::promise<Result<Verification>>>();
    auto result = answer->get_future();
    control_->watch(clock_.steady_now() + std::chrono::seconds(timeout_seconds),
                    [this, answer, id, run, timeout_seconds](Control::State& state, Watch how) {
                        auto const attachment = state.desired().attachments.find(id);
                        if (attachment == state.desired().attachments.end())
                            return answer->set_value(fail(gone(id))), true;
                        auto const& proved = attachment->second.verification;
                        if (proved && proved->run == run) return answer->set_value(*proved), true;
                        if (stopping_) return answer->set_value(fail(stopping())), true;
                        if (how != Watch::expired) return false;
                        auto const verdict = unwritten_.find(id);
                        if (verdict != unwritten_.end() && verdict->second.verification->run == run)
                            return answer->set_value(*verdict->second.verification), true;
                        answer->set_value(fail(no_report(attachment->second, timeout_seconds)));
                        return true;
                    });
    return result.get();
}

// Plans the detach from a fresh view, and does it. The attachment ends, or its VF is quarantined.
Result<void> Engine::perform_detach(Operation& operation, Attachment const& attachment) {
    DetachNotes notes{{clock_.now(), operation.id, operation.requested_by}, {}, {}, {}};
    VFMGR_TRY(HostView host, observe_for(seams_, attachment.vf.pf));
    if (auto const* vf = find_vf(host, attachment.vf)) notes.before = vf->settings;
    VFMGR_TRY(Plan plan, plan_detach(host, *control_->snapshot().desired, attachment));
    operation.steps = planned_steps(plan);
    operation.state = OperationState::running;
    bool const known = control_->snapshot().desired->attachments.contains(attachment.id);
    auto const begin = [&](DesiredState const& now) {
        Batch batch;
        batch.erase_records_of.push_back(operation.id);
        batch.save_operations.push_back(operation);
        save_as(AttachmentState::detaching, attachment.id, now, batch);
        return batch;
    };
    if (!commit_at_last(begin)) return fail(stopping());
    auto const done = execute(seams_, operation, plan, OnFailure::stop);
    Batch end;
    Result<void> outcome;
    bool keeps_it = false;
    if (done) {
        notes.reset_done_at = done->reset_done_at;
        notes.counters = done->counters;
        auto const [residue, certificate] = observe_detached(attachment, notes);
        operation.certificate = certificate;
        end = residue.empty() ? without(attachment) : quarantined(attachment, "not clean", residue);
        if (residue.empty()) {
            end.erase_quarantines.push_back(attachment.vf);
            auto returned = event_of(EventKind::detached, attachment, &operation,
                                     certificate ? "reset and verified clean" : "the VF is gone");
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
    control_->wait([&](Control::State& state) { return state.runs.erase(attachment.id); });
    auto const ended = [&](DesiredState const& now) {
        auto batch = end;
        if (keeps_it) save_as(AttachmentState::attached, attachment.id, now, batch);
        return batch;
    };
    if (!commit_at_last(ended)) return fail(stopping());
    return outcome;
}

// All steps reported success: observes on the host what they achieved.
DetachOutcome Engine::observe_detached(Attachment const& attachment,
                                       DetachNotes const& notes) const {
    auto after = observe_kernel(seams_, attachment.vf.pf);
    if (!after) return {{"the VF can't be read: " + after.error().detail}, {}};
    return detach_outcome(HostView{std::move(*after), {}}, attachment, notes);
}

// Detaches, unless another operation already has.
Result<void> Engine::detach_held(Operation& operation, Attachment const& attached) {
    auto const claim = claims_.take(keys(attached.vf.pf, attached.vm_uuid));
    auto const desired = control_->snapshot().desired;
    auto const attachment = desired->attachments.find(attached.id);
    if (attachment == desired->attachments.end()) return {};
    return perform_detach(operation, attachment->second);
}

void Engine::detach(Operation& operation, std::string const& id) {
    auto const before = control_->snapshot().desired;
    auto const found = before->attachments.find(id);
    if (found == before->attachments.end()) return finish(operation, fail(gone(id)), {});
    auto const claim = claims_.take(keys(found->second.vf.pf, found->second.vm_uuid));
    // Another detach may have been ahead in the queue.
    auto const desired = control_->snapshot().desired;
    auto const attachment = desired->attachments.find(id);
    if (attachment == desired->attachments.end()) return finish(operation, fail(gone(id)), {});
    finish(operation, perform_detach(operation, attachment->second), {});
}

void Engine::lift(Operation& operation, VfId const& vf) {
    auto const over = [&] {
        finish(operation, fail(Problem::not_found, "the VF is no longer in quarantine"), {});
    };
    auto const before = control_->snapshot().desired;
    auto const found = before->quarantine.find(vf);
    if (found == before->quarantine.end()) return over();
    auto const& had_it = found->second.attachment;
    auto const claim = claims_.take(keys(vf.pf, had_it.vm_uuid));
    // Another lift may have been ahead in the queue, and the VF may be attached again.
    auto const desired = control_->snapshot().desired;
    auto const quarantine = desired->quarantine.find(vf);
    if (quarantine == desired->quarantine.end()) return over();
    finish(operation, perform_detach(operation, quarantine->second.attachment), {});
}

void Engine::verify(Operation& operation, Verify const& command) {
    operation.state = OperationState::running;
    auto const remote = remote_end(command);
    if (!remote) {
        operation.steps.back().state = StepState::failed;
        return finish(operation, fail(remote.error()), {});
    }
    finish(operation, prove(operation, command, *remote), {});
}

// Queries the responder before the VM: a fault of the responder does not concern the VM.
Result<std::optional<RemoteEnd>> Engine::remote_end(Verify const& request) const {
    if (!request.responder) return std::nullopt;
    if (!ask_responder_)
        return fail(Problem::unsupported, "this daemon uses no responders of other hosts",
                    "leave the responder out");
    VFMGR_TRY(auto const info, ask_responder_(*request.responder));
    auto const now = control_->snapshot();
    auto const attachment = now.desired->attachments.find(request.attachment);
    if (attachment == now.desired->attachments.end()) return fail(gone(request.attachment));
    VFMGR_CHECK(check_reach(*now.desired, attachment->second, info));
    return RemoteEnd{*request.responder, info, path_to(info.mac, *now.host)};
}

}  // namespace vfmgr
