// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/repairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

constexpr auto filter_aspect = " filter";
constexpr std::chrono::seconds filter_wait_max{1};

}  // namespace

// On the observer's thread, right after an observation. Reads the claims last: an operation whose
// change came into the view during the observation, or into the desired state, had claimed what it
// changed.
DriftWatch::Observed Repairs::observe_drift() {
    auto const now = seams().control.snapshot();
    auto const busy = operations_.claims().taken_meanwhile();
    DriftWatch::Observed observed;
    for (auto const& [pci, desired] : now.desired->pfs) {
        if (!is_managed(desired)) continue;
        observed.managed.insert(pci);
        if (can_be_judged(*now.host, *now.desired, pci) && !busy.contains(pci))
            observed.judged.insert(pci);
    }
    for (auto const& [id, attachment] : now.desired->attachments)
        if (observed.managed.contains(attachment.vf.pf) &&
            can_be_judged(find_pf(*now.host, attachment.vf.pf)) &&
            !busy.contains(attachment.holder ? ClaimKey(attachment.vf.pf)
                                             : VmKey{attachment.vm_uuid}))
            observed.judged_attachments.insert(id);
    observed.drift = find_drift(*now.host, *now.desired);
    return observed;
}

// Reads files only when there is news to report. Their result is kept with the drift, in case it
// can't be reported yet.
void Repairs::name_owners(DriftWatch::Observed& observed) {
    if (!find_owners_) return;
    auto const host = seams().control.snapshot().host;
    std::set<std::string> drift_observed;
    std::set<PciAddress> with_news;
    for (auto const& drift : observed.drift) {
        if (!observed.judged.contains(drift.pf)) continue;
        auto one = fmt::format("{}={}", key_of(drift), drift.found);
        bool const is_new = !drift_observed_.contains(one);
        drift_observed.insert(std::move(one));
        if (is_loss(drift)) continue;
        observed.owners.try_emplace(drift.pf);
        if (is_new) with_news.insert(drift.pf);
    }
    std::vector<PfInfo> pfs;
    for (auto const& pf : with_news)
        if (auto const* const there = find_pf(*host, pf)) pfs.push_back(there->info);
    auto found = pfs.empty() ? OwnersOfPfs{} : find_owners_(pfs);
    for (auto& [pf, owners] : observed.owners)
        owners = with_news.contains(pf) ? found[pf] : owners_[pf];
    owners_ = observed.owners;
    drift_observed_ = std::move(drift_observed);
}

void Repairs::report_drift(Control::State& state, DriftWatch::Observed const& observed) {
    Batch batch;
    for (auto& attachment : changed_by_vms(*seams().control.snapshot().host, state.desired()))
        if (observed.judged.contains(attachment.vf.pf))
            batch.save_attachments.push_back(std::move(attachment));
    batch.save_events =
        drift_watch_.events_of(observed, seams().clock.now(), seams().clock.steady_now(),
                               [&] { return state.next_event(); });
    // If the store can't be written, the next observation finds the same.
    bool const nothing = batch.save_events.empty() && batch.save_attachments.empty();
    if (nothing || state.commit(std::move(batch))) drift_watch_.commit();
}

// Plans once more under the claims: an operation ahead in the queue may have changed all of it.
Result<void> Repairs::plan_and_do(Operation& operation, Repair const& repair) {
    VFMGR_TRY(HostView const host, observe_for(seams(), repair.scope));
    VFMGR_TRY(Plan const plan, repair.plan(host, *seams().control.snapshot().desired));
    return operations_.perform(operation, plan, repair.on_failure);
}

void Repairs::do_repair(Operation& operation, Repair const& repair) {
    auto const claim = operations_.claims().take(repair.claims);
    operation.steps.clear();  // until they are planned again
    auto const outcome = plan_and_do(operation, repair);
    std::optional<std::string> failure;
    if (!outcome) failure = outcome.error().detail;
    bool const did_something = outcome && !operation.steps.empty();
    Batch batch;
    bool const news = seams().control.wait([&](Control::State&) {
        if (did_something && repair.restores)
            if (auto end = drift_watch_.restored(*repair.restores, seams().clock.now()))
                batch.save_events.push_back(std::move(*end));
        return pace_.ended(repair.pace(), failure, seams().clock.steady_now(), repair.wait_max);
    });
    if (repair.event && (did_something || news)) {
        auto event = *repair.event;
        event.at = seams().clock.now();
        event.operation = operation.id;
        event.kind = outcome ? EventKind::repaired : EventKind::repair_failed;
        event.detail = outcome ? what_was_done(operation) : *failure;
        batch.save_events.push_back(std::move(event));
    }
    operations_.finish(operation, outcome, std::move(batch));
    if (did_something && repair.afterwards) repair.afterwards();
}

void Repairs::report_refused(Control::State& state, Event event, Error const& why) {
    event.at = seams().clock.now();
    event.kind = EventKind::repair_failed;
    event.detail = fmt::format("{}: {}", why.detail, why.remedy);
    Batch batch;
    batch.save_events.push_back(std::move(event));
    static_cast<void>(state.commit(std::move(batch)).has_value());
}

// True when the repair runs, or will run as soon as it may: what depends on it waits for it. A
// refused plan counts as a failure, and is reported once.
bool Repairs::begin_repair(Control::State& state, HostView const& host, Repair repair) {
    auto const now = seams().clock.steady_now();
    if (pace_.going_on(repair.pace())) return true;
    auto const plan = repair.plan(host, state.desired());
    if (!plan) {
        if (pace_.refused(repair.pace(), plan.error().detail, now) && repair.event)
            report_refused(state, std::move(*repair.event), plan.error());
        return false;
    }
    if (plan->steps.empty()) {
        pace_.all_right(repair.pace());
        return false;
    }
    if (!pace_.may_begin(repair.pace(), now)) return !pace_.failed(repair.pace());
    auto operation = new_operation(OperationKind::restore, repair.subject, seams().clock.now());
    operation.requested_by = "daemon";
    operation.steps = planned_steps(*plan);
    auto const pace = repair.pace();
    // With too many operations, or a store that can't be written, it is tried after the next
    // observation.
    if (!operations_.accept(
            state, std::move(operation), Intent{},
            [this, repair = std::move(repair)](Operation& running) { do_repair(running, repair); }))
        return false;
    pace_.begun(pace);
    return true;
}

Repair Repairs::repair_of_pf(PciAddress const& pf, std::optional<std::uint64_t> because_of) const {
    Event event;
    event.pf = pf;
    event.because_of = because_of;
    return {subject_of(pf),
            pf,
            {pf},
            [pf](HostView const& host, DesiredState const& desired) {
                return plan_repair(host, desired, pf);
            },
            OnFailure::stop,  // half repaired is better than not at all
            std::move(event),
            {},
            {}};
}

// Waits briefly each time: a filter that another program keeps flushing is back within a second.
Repair Repairs::repair_of_filter(PciAddress const& pf,
                                 std::optional<std::uint64_t> because_of) const {
    auto repair = repair_of_pf(pf, because_of);
    repair.plan = [pf](HostView const& host, DesiredState const& desired) {
        return plan_closing(host, desired, pf);
    };
    repair.aspect = filter_aspect;
    repair.wait_max = filter_wait_max;
    return repair;
}

Repair Repairs::repair_of_attachment(Attachment const& attachment,
                                     std::optional<std::uint64_t> because_of) {
    auto event = event_of(EventKind::repaired, attachment, nullptr, "", seams().clock.now());
    event.because_of = because_of;
    auto prove_again = [this, attachment] {
        if (attachment.spec.verify.value_or(VerifyMode::none) == VerifyMode::none) return;
        submit_(Verify{attachment.id,
                       attachment.spec.verify_timeout_seconds,
                       attachment.spec.verify_profile.value_or(Profile::default_),
                       {}},
                "daemon");
    };
    return {
        attachment_subject(attachment.id),
        attachment.vf.pf,
        claims_on(attachment),
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
void Repairs::repair_drift(Control::State& state, DriftWatch::Observed const& observed) {
    if (operations_.stopping()) return;
    pace_.forget_old(seams().clock.steady_now());
    auto const host = seams().control.snapshot().host;
    for (auto const& [pf, desired] : state.desired().pfs) {
        if (!observed.managed.contains(pf)) continue;
        close_again(state, *host, pf, observed);
        if (desired.spec.mode == PfMode::enforce)
            repair_drift_of(state, *host, pf, observed);
        else
            rebind_adopted(state, *host, pf, observed);
    }
}

// The adoption is what made this necessary, so it is no drift that an admin is to judge.
void Repairs::rebind_adopted(Control::State& state, HostView const& host, PciAddress const& pf,
                             DriftWatch::Observed const& observed) {
    if (!observed.judged.contains(pf)) return;
    pace_.observed_at_rest(subject_of(pf));
    auto const drift = std::ranges::find(observed.drift, pf, &Drift::pf);
    if (drift == observed.drift.end()) return pace_.all_right(subject_of(pf));
    auto repair = repair_of_pf(pf, drift_watch_.reported_as(*drift));
    repair.plan = [pf](HostView const& now, DesiredState const& desired) {
        return plan_rebinding(now, desired, pf);
    };
    begin_repair(state, host, std::move(repair));
}

// Runs in every mode: while the filter is open a VM reaches what it must not, whatever manages the
// rest. While an operation runs on the PF, it may be about to set what is missing.
void Repairs::close_again(Control::State& state, HostView const& host, PciAddress const& pf,
                          DriftWatch::Observed const& observed) {
    auto const subject = subject_of(pf) + filter_aspect;
    bool const at_rest = observed.judged.contains(pf);
    if (at_rest) pace_.observed_at_rest(subject);
    if (!at_rest && !pace_.kept_waiting(subject, seams().clock.steady_now())) return;
    if (!can_be_judged(find_pf(host, pf))) return;
    auto const drift = std::ranges::find(observed.drift, pf, &Drift::pf);
    begin_repair(
        state, host,
        repair_of_filter(
            pf, drift == observed.drift.end() ? std::nullopt : drift_watch_.reported_as(*drift)));
}

void Repairs::repair_drift_of(Control::State& state, HostView const& host, PciAddress const& pf,
                              DriftWatch::Observed const& observed) {
    bool const at_rest = observed.judged.contains(pf);
    if (at_rest) pace_.observed_at_rest(subject_of(pf));
    if (!at_rest && !pace_.kept_waiting(subject_of(pf), seams().clock.steady_now())) return;
    auto const drift = std::ranges::find(observed.drift, pf, &Drift::pf);
    if (drift == observed.drift.end()) return pace_.all_right(subject_of(pf));
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
