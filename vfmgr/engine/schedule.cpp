// SPDX-License-Identifier: Apache-2.0
// Scheduled verifications. They change nothing on the host and no caller waits for them, so they
// are not operations: the control thread begins a run, as for a guest that requests one, and its
// verdict goes into the attachment and the history like any other.
#include "vfmgr/plan/schedule.hpp"

#include <fmt/format.h>

#include "api/os/random.hpp"
#include "vfmgr/engine/runs.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using End = ScheduledRun::End;

constexpr auto between_runs = 1s;
constexpr auto retry_after = 60s;  // for a VM in which nothing can be verified

// Returns the first run that may begin, after those that began before.
std::optional<DueVerification> first_due(Control::State const& state, Schedule const& schedule,
                                         Time now) {
    auto due = next_verification(state.desired(), schedule.not_before, now);
    if (due && schedule.last_begun && *schedule.last_begun <= now)
        due->at = std::max(due->at, *schedule.last_begun + between_runs);
    return due;
}

bool answered(Control::State const& state, Schedule::GoingOn const& run) {
    auto const attachment = state.desired().attachments.find(run.attachment);
    // True also without an attachment: the run of a detached one is not reported.
    if (attachment == state.desired().attachments.end()) return true;
    auto const& last = attachment->second.verification;
    if (last && last->run == run.run) return true;
    auto const pending = state.runs().find(run.attachment);
    return pending == state.runs().end() || pending->second.run != run.run;
}

}  // namespace

void Runs::start_schedule(ScheduleHooks hooks) {
    seams().control.wait(
        [&](Control::State&) { return (schedule_.hooks = std::move(hooks), true); });
    seams().control.post([this](Control::State& state) { check_schedule(state); });
}

void Runs::stop_schedule() {
    seams().control.wait([&](Control::State&) { return (schedule_.hooks.reset(), true); });
}

void Runs::await_schedule() {
    auto const until = schedule_.going_on ? schedule_.going_on->deadline
                       : schedule_.next
                           ? seams().clock.steady_now() + (*schedule_.next - seams().clock.now())
                           : Deadline::max();
    seams().control.watch(until, [this](Control::State& state, Watch how) {
        if (!schedule_.hooks) return true;
        if (how == Watch::again && !schedule_changed(state)) return false;
        check_schedule(state);
        return true;
    });
}

bool Runs::schedule_changed(Control::State const& state) const {
    auto const& run = schedule_.going_on;
    if (run) return answered(state, *run);  // its deadline expires the watch
    auto const now = seams().clock.now();
    auto const due = first_due(state, schedule_, now);
    if (!due) return schedule_.next.has_value();
    return due->at <= now || due->at != schedule_.next;
}

void Runs::check_schedule(Control::State& state) {
    if (!schedule_.hooks) return;
    auto const gone = [&](auto const& entry) {
        return !state.desired().attachments.contains(entry.first);
    };
    std::erase_if(schedule_.not_before, gone);
    std::erase_if(schedule_.reported, gone);
    end_scheduled(state);
    schedule_.next.reset();
    while (!schedule_.going_on) {
        auto const now = seams().clock.now();
        auto const due = first_due(state, schedule_, now);
        if (due) schedule_.next = due->at;
        if (!due || due->at > now) break;
        begin_scheduled(state, state.desired().attachments.at(due->attachment));
    }
    await_schedule();
}

// Begins a run over the attachment, or postpones it.
void Runs::begin_scheduled(Control::State& state, Attachment const& attachment) {
    auto const now = seams().clock.now();
    schedule_.not_before[attachment.id] = now + retry_after;
    if (!write_verdict(state, attachment.id)) return;
    // A run was requested meanwhile; its start counts instead.
    if (auto const run = state.runs().find(attachment.id);
        run != state.runs().end() && now < run->second.until)
        return;
    auto hindrance = verification_hindrance(*seams().control.snapshot().host, attachment);
    if (!hindrance && !schedule_.hooks->guest_waits(guest_key(attachment)))
        hindrance =
            Hindrance{fmt::format("vf-guest in VM {} is not waiting for runs", attachment.vm),
                      "start it there: systemctl enable --now vf-guest"};
    if (hindrance) {
        auto& reported = schedule_.reported[attachment.id];
        if (std::exchange(reported, hindrance->detail) != hindrance->detail)
            schedule_.hooks->report({End::skipped, attachment.id, attachment.vm,
                                     std::move(hindrance->detail), std::move(hindrance->remedy)});
        return;
    }
    schedule_.reported.erase(attachment.id);
    auto const run = random_hex(8);
    std::chrono::seconds const timeout(attachment.spec.verify_timeout_seconds);
    // Its deadline is no later than the run's end: a run that has ended would count as answered.
    schedule_.going_on =
        Schedule::GoingOn{attachment.id, run, seams().clock.steady_now() + timeout};
    start_run(state, attachment.id,
              {run,
               random_hex(16),
               now,
               now + timeout,
               attachment.spec.verify_profile.value_or(Profile::default_),
               {}});
    schedule_.last_begun = now;
    // Set even if no report comes: without a report there is no last run to count from.
    schedule_.not_before[attachment.id] =
        now + std::chrono::seconds(attachment.spec.verify_every_seconds);
}

void Runs::end_scheduled(Control::State& state) {
    if (!schedule_.going_on) return;
    auto const run = *schedule_.going_on;
    bool const late = seams().clock.steady_now() >= run.deadline;
    if (!answered(state, run) && !late) return;
    schedule_.going_on.reset();
    auto const found = state.desired().attachments.find(run.attachment);
    if (found == state.desired().attachments.end()) return;
    auto const& attachment = found->second;
    auto const report = [&](End end, std::string detail, std::string remedy) {
        schedule_.hooks->report(
            {end, attachment.id, attachment.vm, std::move(detail), std::move(remedy)});
    };
    auto const& last = attachment.verification;
    if (last && last->run == run.run) {
        for (auto const& warning : last->warnings)
            report(End::warned, warning.detail, warning.remedy);
        if (last->verdict != Verdict::pass) {
            auto why = failed_verification(attachment, *last);
            report(End::failed, std::move(why.detail), std::move(why.remedy));
        } else if (last->warnings.empty()) {
            report(End::passed, "RDMA is proved", "");
        }
    } else if (auto const verdict = unwritten_.find(attachment.id);
               verdict != unwritten_.end() && verdict->second.verification->run == run.run) {
        report(End::failed, "its report arrived but could not be stored yet",
               "free space for the store on the disk of state_dir");
    } else if (auto const other = state.runs().find(attachment.id);
               other != state.runs().end() && other->second.run != run.run) {
        report(End::skipped, "another run of this attachment has begun", "no action is needed");
    } else if (late) {
        auto why = no_report(attachment, attachment.spec.verify_timeout_seconds);
        report(End::failed, std::move(why.detail), std::move(why.remedy));
    } else if (attachment.state == AttachmentState::attached) {
        report(End::skipped, "a detach or a change of the VF began meanwhile",
               "no action is needed");
    }
}

}  // namespace vfmgr
