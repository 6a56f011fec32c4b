// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/repair.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds first_wait = 1s;
// The longest wait after a repair that fails the same way each time: a report every few seconds
// helps no reader.
constexpr std::chrono::seconds failed_wait_max = 10min;
constexpr auto calm = 1min;
// Where VMs come and go all the time, no observation finds a PF at rest.
constexpr auto patience = 5s;

constexpr auto filter_aspect = " filter";

std::chrono::seconds doubled(unsigned times, std::chrono::seconds longest) {
    return std::min(first_wait * (1 << std::min(times, 16U)), longest);
}

std::string pf_subject(PciAddress const& pf) {
    return "/v1/pfs/" + to_string(pf);
}
std::string attachment_subject(Attachment const& attachment) {
    return "/v1/attachments/" + attachment.id;
}

Error with_residue(Failure const& failure) {
    auto error = failure.error;
    if (!failure.residue.empty())
        error.detail += fmt::format("; left behind: {}", fmt::join(failure.residue, "; "));
    return error;
}

std::string what_was_done(Operation const& operation) {
    std::vector<std::string> done;
    for (auto const& step : operation.steps)
        if (step.state == StepState::done) done.push_back(step.sentence);
    return fmt::format("done: {}", fmt::join(done, "; "));
}

}  // namespace

bool RepairPace::going_on(std::string const& subject) const {
    auto const pace = paces_.find(subject);
    return pace != paces_.end() && pace->second.going_on;
}

bool RepairPace::failed(std::string const& subject) const {
    auto const pace = paces_.find(subject);
    return pace != paces_.end() && pace->second.failure;
}

bool RepairPace::may_begin(std::string const& subject, Deadline now) const {
    auto const pace = paces_.find(subject);
    return pace == paces_.end() || (!pace->second.going_on && now >= pace->second.not_before);
}

void RepairPace::begun(std::string const& subject) {
    paces_[subject].going_on = true;
}

bool RepairPace::ended(std::string const& subject, std::optional<std::string> failure, Deadline now,
                       std::chrono::seconds wait_max) {
    auto& pace = paces_[subject];
    pace.going_on = false;
    if (now > pace.not_before + calm) pace.in_a_row = 0;
    bool const news = failure && failure != pace.failure;
    pace.same_failures = failure && !news ? pace.same_failures + 1 : 0;
    pace.not_before = now + std::max(doubled(pace.in_a_row++, wait_max),
                                     doubled(pace.same_failures, failed_wait_max));
    pace.failure = std::move(failure);
    return news;
}

bool RepairPace::refused(std::string const& subject, std::string const& why, Deadline now) {
    auto& pace = paces_[subject];
    pace.refused_at = now;
    if (why == pace.failure || (pace.reported_at && now < *pace.reported_at + calm)) return false;
    pace.reported_at = now;
    pace.failure = why;
    return true;
}

void RepairPace::all_right(std::string const& subject) {
    auto const pace = paces_.find(subject);
    if (pace != paces_.end() && !pace->second.going_on && pace->second.failure) paces_.erase(pace);
}

bool RepairPace::kept_waiting(std::string const& subject, Deadline now) {
    return now >= busy_since_.emplace(subject, now).first->second + patience;
}

void RepairPace::observed_at_rest(std::string const& subject) {
    busy_since_.erase(subject);
}

void RepairPace::forget_old(Deadline now) {
    std::erase_if(paces_, [&](auto const& entry) {
        auto const& pace = entry.second;
        return !pace.going_on && now > std::max(pace.not_before, pace.refused_at) + calm;
    });
}

Result<void> Engine::do_plan(Operation& operation, Plan const& plan, OnFailure on_failure) {
    operation.state = OperationState::running;
    operation.steps = planned_steps(plan);
    auto const done = execute(seams_, operation, plan, on_failure);
    if (!done) return fail(with_residue(done.error()));
    return {};
}

// Plans once more under the claims: an operation ahead in the queue may have changed all of it.
Result<void> Engine::plan_and_do(Operation& operation, Repair const& repair) {
    VFMGR_TRY(HostView const host, observe_for(seams_, repair.scope));
    VFMGR_TRY(Plan const plan, repair.plan(host, *control_->snapshot().desired));
    return do_plan(operation, plan, repair.on_failure);
}

void Engine::do_repair(Operation& operation, Repair const& repair) {
    auto const claim = claims_.take(repair.claims);
    operation.steps.clear();  // until they are planned again
    auto const outcome = plan_and_do(operation, repair);
    std::optional<std::string> failure;
    if (!outcome) failure = outcome.error().detail;
    bool const did_something = outcome && !operation.steps.empty();
    Batch batch;
    bool const news = control_->wait([&](Control::State&) {
        if (did_something && repair.restores)
            if (auto end = drift_watch_.restored(*repair.restores, clock_.now()))
                batch.save_events.push_back(std::move(*end));
        return repairs_.ended(repair.pace(), failure, clock_.steady_now(), repair.wait_max);
    });
    if (repair.event && (did_something || news)) {
        auto event = *repair.event;
        event.at = clock_.now();
        event.operation = operation.id;
        event.kind = outcome ? EventKind::repaired : EventKind::repair_failed;
        event.detail = outcome ? what_was_done(operation) : *failure;
        batch.save_events.push_back(std::move(event));
    }
    finish(operation, outcome, std::move(batch));
    if (did_something && repair.afterwards) repair.afterwards();
}

void Engine::report_refused(Control::State& state, HistoryEvent event, Error const& why) {
    event.at = clock_.now();
    event.kind = EventKind::repair_failed;
    event.detail = fmt::format("{}: {}", why.detail, why.remedy);
    Batch batch;
    batch.save_events.push_back(std::move(event));
    static_cast<void>(state.commit(std::move(batch)).has_value());
}

// True when it runs, or will as soon as it may: what depends on it waits for it. A refused plan
// counts as a failure, and is reported once.
bool Engine::begin_repair(Control::State& state, HostView const& host, Repair repair) {
    auto const now = clock_.steady_now();
    if (repairs_.going_on(repair.pace())) return true;
    auto const plan = repair.plan(host, state.desired());
    if (!plan) {
        if (repairs_.refused(repair.pace(), plan.error().detail, now) && repair.event)
            report_refused(state, std::move(*repair.event), plan.error());
        return false;
    }
    if (plan->steps.empty()) {
        repairs_.all_right(repair.pace());
        return false;
    }
    if (!repairs_.may_begin(repair.pace(), now)) return !repairs_.failed(repair.pace());
    Operation operation;
    operation.id = random_hex(8);
    operation.kind = OperationKind::restore;
    operation.subject = repair.subject;
    operation.requested_by = "daemon";
    operation.created_at = clock_.now();
    operation.steps = planned_steps(*plan);
    auto const pace = repair.pace();
    // With too many operations, or a store that can't be written, it is tried after the next
    // observation.
    if (!accept(
            state, std::move(operation), Intent{},
            [this, repair = std::move(repair)](Operation& running) { do_repair(running, repair); }))
        return false;
    repairs_.begun(pace);
    return true;
}

Repair Engine::repair_of_pf(PciAddress const& pf, std::optional<std::uint64_t> because_of) const {
    HistoryEvent event;
    event.pf = pf;
    event.because_of = because_of;
    return {pf_subject(pf),
            pf,
            {"pf " + to_string(pf)},
            [pf](HostView const& host, DesiredState const& desired) {
                return plan_repair(host, desired, pf);
            },
            OnFailure::stop,  // half repaired is better than not at all
            std::move(event),
            {},
            {}};
}

// Waits briefly each time: a filter that another program keeps flushing is back within a second.
Repair Engine::repair_of_filter(PciAddress const& pf,
                                std::optional<std::uint64_t> because_of) const {
    auto repair = repair_of_pf(pf, because_of);
    repair.plan = [pf](HostView const& host, DesiredState const& desired) {
        return plan_closing(host, desired, pf);
    };
    repair.aspect = filter_aspect;
    repair.wait_max = first_wait;
    return repair;
}

Repair Engine::repair_of_attachment(Attachment const& attachment,
                                    std::optional<std::uint64_t> because_of) {
    auto event = event_of(EventKind::repaired, attachment, nullptr, "");
    event.because_of = because_of;
    auto prove_again = [this, attachment] {
        if (attachment.spec.verify == VerifyMode::none) return;
        submit(Verify{attachment.id,
                      attachment.spec.verify_timeout_seconds,
                      attachment.spec.verify_profile,
                      {}},
               Intent{false, "daemon", {}, {}, {}}, [](Result<Answer> const&) {});
    };
    return {
        attachment_subject(attachment),
        attachment.vf.pf,
        {"pf " + to_string(attachment.vf.pf), "vm " + attachment.vm_uuid},
        [id = attachment.id](HostView const& host, DesiredState const& desired) -> Result<Plan> {
            auto const now = desired.attachments.find(id);
            if (now == desired.attachments.end() || now->second.state != AttachmentState::attached)
                return Plan{};
            VFMGR_CHECK(require_same_pf(host, desired, now->second.vf.pf));
            return plan_return(host, now->second);
        },
        OnFailure::undo,
        std::move(event),
        attachment,
        std::move(prove_again)};
}

// Runs after report_drift(), so what is repaired was reported.
void Engine::repair_drift(Control::State& state, DriftWatch::Observed const& observed) {
    if (stopping_) return;
    repairs_.forget_old(clock_.steady_now());
    auto const host = control_->snapshot().host;
    for (auto const& [pf, desired] : state.desired().pfs) {
        if (!observed.managed.contains(pf)) continue;
        close_again(state, *host, pf, observed);
        if (desired.spec.mode == PfMode::enforce) repair_drift_of(state, *host, pf, observed);
    }
}

// Runs in every mode: while the filter is open a VM reaches what it must not, whatever manages the
// rest. While an operation runs on the PF, it may be about to set what is missing.
void Engine::close_again(Control::State& state, HostView const& host, PciAddress const& pf,
                         DriftWatch::Observed const& observed) {
    auto const subject = pf_subject(pf) + filter_aspect;
    bool const at_rest = observed.judged.contains(pf);
    if (at_rest) repairs_.observed_at_rest(subject);
    if (!at_rest && !repairs_.kept_waiting(subject, clock_.steady_now())) return;
    if (!can_be_judged(find_pf(host, pf))) return;
    auto const drift = std::ranges::find(observed.drift, pf, &Drift::pf);
    begin_repair(
        state, host,
        repair_of_filter(
            pf, drift == observed.drift.end() ? std::nullopt : drift_watch_.reported_as(*drift)));
}

void Engine::repair_drift_of(Control::State& state, HostView const& host, PciAddress const& pf,
                             DriftWatch::Observed const& observed) {
    bool const at_rest = observed.judged.contains(pf);
    if (at_rest) repairs_.observed_at_rest(pf_subject(pf));
    if (!at_rest && !repairs_.kept_waiting(pf_subject(pf), clock_.steady_now())) return;
    auto const drift = std::ranges::find(observed.drift, pf, &Drift::pf);
    if (drift == observed.drift.end()) return repairs_.all_right(pf_subject(pf));
    // A VF returns to its VM once it exists and stays: a VF in a VM keeps the others from being
    // created. On a PF that is not at rest, an operation may be about to add what is still missing.
    bool const begun =
        begin_repair(state, host, repair_of_pf(pf, drift_watch_.reported_as(*drift)));
    if (begun && at_rest) return;
    for (auto const& attachment : attached_on(state.desired(), pf)) {
        auto const lost = std::ranges::find_if(
            observed.drift, [&](Drift const& one) { return one.attachment == attachment.id; });
        if (lost != observed.drift.end() && (at_rest || observed.can_judge(*lost)))
            begin_repair(state, host,
                         repair_of_attachment(attachment, drift_watch_.reported_as(*lost)));
    }
}

}  // namespace vfmgr
