// SPDX-License-Identifier: Apache-2.0
// Scheduled verifications. They change nothing on the host and nobody waits for them, so they are
// no operations: the control thread begins a run, as for a guest that asks for one, and its verdict
// comes like any other, into the lease and the history.
#include "vfmgr/plan/schedule.hpp"

#include <fmt/format.h>

#include "vfmgr/engine/engine.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using End = ScheduledRun::End;

constexpr auto between_runs = 1s;
constexpr auto look_again_after = 60s;  // at a VM in which nothing can be verified

// The first run that may begin, after those that began before.
std::optional<DueVerification> first_due(Control::State const& state, Schedule const& schedule,
                                         Time now) {
    auto due = next_verification(state.desired(), schedule.not_before, now);
    if (due && schedule.last_begun && *schedule.last_begun <= now)
        due->at = std::max(due->at, *schedule.last_begun + between_runs);
    return due;
}

bool answered(Control::State const& state, Schedule::GoingOn const& run) {
    auto const lease = state.desired().attachments.find(run.attachment);
    // Without a lease, too: nobody is told of what was taken back.
    if (lease == state.desired().attachments.end()) return true;
    auto const& last = lease->second.verification;
    if (last && last->run == run.run) return true;
    auto const pending = state.runs.find(run.attachment);
    return pending == state.runs.end() || pending->second.run != run.run;
}

}  // namespace

void Engine::start_schedule(ScheduleHooks hooks) {
    control_->wait([&](Control::State&) { return (schedule_.hooks = std::move(hooks), true); });
    control_->post([this](Control::State& state) { look_at_schedule(state); });
}

void Engine::stop_schedule() {
    control_->wait([&](Control::State&) { return (schedule_.hooks.reset(), true); });
}

// What watchers do to the state is not published, so that it is left to a task.
void Engine::await_schedule() {
    auto const until = schedule_.going_on ? schedule_.going_on->deadline
                       : schedule_.next   ? clock_.steady_now() + (*schedule_.next - clock_.now())
                                          : Deadline::max();
    control_->watch(until, [this](Control::State& state, Watch how) {
        if (!schedule_.hooks) return true;
        if (how == Watch::again && !schedule_changed(state)) return false;
        control_->post([this](Control::State& later) { look_at_schedule(later); });
        return true;
    });
}

bool Engine::schedule_changed(Control::State const& state) const {
    auto const& run = schedule_.going_on;
    if (run) return answered(state, *run) || clock_.steady_now() >= run->deadline;
    auto const now = clock_.now();
    auto const due = first_due(state, schedule_, now);
    if (!due) return schedule_.next.has_value();
    return due->at <= now || due->at != schedule_.next;
}

void Engine::look_at_schedule(Control::State& state) {
    if (!schedule_.hooks) return;
    auto const gone = [&](auto const& entry) {
        return !state.desired().attachments.contains(entry.first);
    };
    std::erase_if(schedule_.not_before, gone);
    std::erase_if(schedule_.told, gone);
    end_scheduled(state);
    schedule_.next.reset();
    while (!schedule_.going_on) {
        auto const now = clock_.now();
        auto const due = first_due(state, schedule_, now);
        if (due) schedule_.next = due->at;
        if (!due || due->at > now) break;
        begin_scheduled(state, state.desired().attachments.at(due->attachment));
    }
    await_schedule();
}

// Begins a run over the lease, or puts it off.
void Engine::begin_scheduled(Control::State& state, Attachment const& lease) {
    auto const now = clock_.now();
    schedule_.not_before[lease.id] = now + look_again_after;
    if (!write_verdict(state, lease.id)) return;
    // Somebody asked for a run, whose start then counts.
    if (auto const run = state.runs.find(lease.id);
        run != state.runs.end() && now < run->second.until)
        return;
    auto hindrance = verification_hindrance(*control_->snapshot().host, lease);
    if (!hindrance && !schedule_.hooks->guest_waits(lease.vm_uuid))
        hindrance =
            Hindrance{fmt::format("vf-guest does not wait for runs in VM {}", lease.vm_name),
                      "start it there: systemctl enable --now vf-guest"};
    if (hindrance) {
        auto& told = schedule_.told[lease.id];
        if (std::exchange(told, hindrance->detail) != hindrance->detail)
            schedule_.hooks->tell({End::skipped, lease.id, lease.vm_name,
                                   std::move(hindrance->detail), std::move(hindrance->remedy)});
        return;
    }
    schedule_.told.erase(lease.id);
    auto const run = random_id(16);
    std::chrono::seconds const timeout(lease.spec.verify_timeout_seconds);
    // Its deadline is no later than the run's end: a run that has ended would count as answered.
    schedule_.going_on = Schedule::GoingOn{lease.id, run, clock_.steady_now() + timeout};
    start_run(state, lease.id,
              {run, random_id(32), now, now + timeout, lease.spec.verify_profile, {}});
    schedule_.last_begun = now;
    // Also when no report comes, from which the next start would be counted.
    schedule_.not_before[lease.id] = now + std::chrono::seconds(lease.spec.verify_every_seconds);
}

void Engine::end_scheduled(Control::State& state) {
    if (!schedule_.going_on) return;
    auto const run = *schedule_.going_on;
    bool const late = clock_.steady_now() >= run.deadline;
    if (!answered(state, run) && !late) return;
    schedule_.going_on.reset();
    auto const found = state.desired().attachments.find(run.attachment);
    if (found == state.desired().attachments.end()) return;
    auto const& lease = found->second;
    auto const tell = [&](End end, std::string detail, std::string remedy) {
        schedule_.hooks->tell({end, lease.id, lease.vm_name, std::move(detail), std::move(remedy)});
    };
    auto const& last = lease.verification;
    if (last && last->run == run.run) {
        for (auto const& warning : last->warnings)
            tell(End::warned, warning.detail, warning.remedy);
        if (last->verdict != Verdict::pass) {
            auto why = failed_verification(lease, *last);
            tell(End::failed, std::move(why.detail), std::move(why.remedy));
        } else if (last->warnings.empty()) {
            tell(End::passed, "RDMA is proved", "");
        }
    } else if (auto const said = unwritten_.find(lease.id);
               said != unwritten_.end() && said->second.verification->run == run.run) {
        tell(End::failed, "its report came and could not be stored so far",
             "make room for the store on the disk of state_dir");
    } else if (auto const other = state.runs.find(lease.id);
               other != state.runs.end() && other->second.run != run.run) {
        tell(End::skipped, "another run of it has begun", "nothing is to be done");
    } else if (late) {
        auto why = no_report(lease, lease.spec.verify_timeout_seconds);
        tell(End::failed, std::move(why.detail), std::move(why.remedy));
    } else if (lease.state == AttachmentState::attached) {
        tell(End::skipped, "a detach of the VF began meanwhile", "nothing is to be done");
    }
}

}  // namespace vfmgr
