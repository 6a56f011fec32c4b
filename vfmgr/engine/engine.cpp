// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>

#include "vfmgr/engine/exception_of.hpp"

namespace vfmgr {

using namespace std::chrono_literals;

// An observation of a thousand VFs takes seconds where CPUs are slow or busy.
constexpr auto rest_max = 15s;
// Refusals of one client that wait for a fresh observation; further ones are answered without it.
constexpr std::ptrdiff_t awaiting_each_max = 16;

Engine::Engine(Kernel& kernel, Hypervisor& hypervisor, std::unique_ptr<Control> control,
               Clock& clock, AskResponder ask_responder, TrustedNetdevs trusted_netdevs,
               FindOwners find_owners)
    : kernel_(kernel),
      hypervisor_(hypervisor),
      clock_(clock),
      control_(std::move(control)),
      ask_responder_(std::move(ask_responder)),
      trusted_netdevs_(std::move(trusted_netdevs)),
      find_owners_(std::move(find_owners)),
      seams_{kernel_, hypervisor_, *control_, clock_, &gate_},
      // Drift under a claim was not judged: now it can be.
      claims_([this] { observe_again(); }) {}

void Engine::stop_waiting() {
    stopping_ = true;
    observe_again();
    stop_schedule();
    control_->expire_watches();
}

bool Engine::stop(Deadline patience) {
    {
        std::unique_lock lock(threads_mutex_);
        if (threads_changed_.wait_until(lock, patience, [this] { return running_ == 0; }))
            return true;
    }
    gate_.shut();
    return false;
}

Engine::~Engine() {
    gate_.open();
    stop_waiting();
    if (observer_.joinable()) observer_.join();
    control_->finish_offers();  // every command has had its reply
    std::unique_lock lock(threads_mutex_);
    threads_changed_.wait(lock, [this] { return running_ == 0; });
}

void Engine::start_observing() {
    {
        std::lock_guard const lock(observer_mutex_);
        observing_ = true;
    }
    observer_ = std::thread([this] { observe_loop(); });
}

void Engine::observe_again() {
    {
        std::lock_guard const lock(observer_mutex_);
        observe_now_ = true;
    }
    observer_wake_.notify_all();
}

void Engine::observe_at_once() {
    {
        std::lock_guard const lock(observer_mutex_);
        observe_now_ = at_once_ = true;
    }
    observer_wake_.notify_all();
}

bool Engine::after_observing(std::string const& client, std::function<void(Control::State&)> task) {
    {
        std::lock_guard const lock(observer_mutex_);
        if (!observing_) return false;
        if (std::ranges::count(awaiting_, client, &Awaiting::client) >= awaiting_each_max)
            return false;
        awaiting_.push_back({client, std::move(task)});
    }
    observer_wake_.notify_all();
    return true;
}

void Engine::judge_observed() {
    auto observed = observe_drift();
    // Reports losses first: reading files would delay what matters most.
    if (std::ranges::any_of(observed.drift, is_loss))
        control_->post([this, losses = observed.losses()](Control::State& state) {
            report_drift(state, losses);
        });
    name_owners(observed);
    control_->post([this, observed = std::move(observed)](Control::State& state) {
        learn_identities(state);
        repair_links(state);
        report_drift(state, observed);
        repair_drift(state, observed);
    });
}

void Engine::observe_loop() {
    std::unique_lock lock(observer_mutex_);
    while (observing_) {
        observing_ = !stopping_;  // a last observation for tasks that already wait
        auto const awaiting = std::exchange(awaiting_, {});
        // True when recover() has observed, and nothing has reported or made a change since.
        bool const is_observed = std::exchange(observed_at_start_, false) && !observe_now_ &&
                                 awaiting.empty() && claims_.taken_meanwhile().empty();
        observe_now_ = at_once_ = false;
        lock.unlock();
        auto const began = clock_.steady_now();
        auto const observe = [&] {
            if (!is_observed) {
                claims_.observation_begins();
                // An unreadable host stays published as it was; operations observe for themselves.
                static_cast<void>(observe_for(seams_, std::nullopt).has_value());
            }
            judge_observed();
        };
        if (auto const bug = exception_of(observe))
            control_->report_bug("an exception ended an observation of the host: " + *bug);
        for (auto const& one : awaiting) control_->post(one.task);
        auto const took = clock_.steady_now() - began;
        lock.lock();
        auto const asked = [this] { return !awaiting_.empty() || stopping_.load(); };
        observer_wake_.wait_for(lock, 5s, [&] { return observe_now_ || asked(); });
        // Whatever happens on the host, observing it takes a tenth of a CPU at most, and half of
        // one while VMs change. Only tasks that wait for an observation, and a stop, skip the
        // pause.
        observer_wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(took, rest_max), asked);
        observer_wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(8 * took, rest_max),
                                [&] { return at_once_ || asked(); });
    }
}

Result<void> Engine::launch(Operation operation, Work work) {
    return spawn([this, operation = std::move(operation), work = std::move(work)]() mutable {
        if (auto const what = exception_of([&] { work(operation); }))
            recover_from(operation, *what);
        places_.leave(operation.id);
    });
}

Result<void> Engine::spawn(std::function<void()> work) {
    {
        std::lock_guard const lock(threads_mutex_);
        ++running_;
    }
    auto const ended = [this] {
        std::lock_guard const lock(threads_mutex_);
        --running_;
        threads_changed_.notify_all();
    };
    auto run = [work = std::move(work), ended]() {
        work();
        ended();
    };
    auto const none = exception_of([&] { std::thread(std::move(run)).detach(); });
    if (!none) return {};
    ended();
    return fail(Problem::unavailable, "vfmgrd can't start another thread: " + *none,
                "check what else runs on the host, and what limits threads: systemctl show "
                "vfmgrd -p TasksMax");
}

// Ends the operation without undoing its steps. If even that throws, the journal still has the
// operation, and the next start's recovery ends it.
void Engine::end_by_exception(Operation& operation, std::string const& what) {
    auto const detail = fmt::format("an exception ended operation {}: {}", operation.id, what);
    auto const again = exception_of([&] {
        control_->report_bug(detail);
        finish(operation, fail(Problem::internal, detail, "report this with the daemon's log"), {});
    });
    if (!again) return;
    static_cast<void>(exception_of([&] {
        control_->report_bug(
            fmt::format("{}; another kept its end from being stored: {}", detail, *again));
    }));
}

void Engine::finish(Operation& operation, Result<void> const& outcome, Batch batch) {
    operation.state = outcome ? OperationState::succeeded : OperationState::failed;
    if (!outcome) operation.problem = outcome.error();
    operation.finished_at = clock_.now();
    batch.save_operations.push_back(operation);
    batch.erase_records_of.push_back(operation.id);
    if (commit_at_last(batch)) observe_again();
}

bool Engine::commit_at_last(Batch const& batch) {
    return commit_at_last([&](DesiredState const&) { return batch; });
}

bool Engine::commit_at_last(std::function<Batch(DesiredState const&)> const& make) {
    auto const written = [&](Control::State& state) {
        return state.commit(make(state.desired())).has_value();
    };
    while (!control_->wait(written)) {
        std::unique_lock lock(observer_mutex_);
        if (observer_wake_.wait_for(lock, full_disk_retry, [this] { return stopping_.load(); }))
            return false;
    }
    return true;
}

void Engine::on_event(std::function<void(HistoryEvent const&)> emit) {
    control_->wait([&](Control::State& state) { return (state.emit = std::move(emit), true); });
}

void Engine::on_operation(std::function<void(Operation const&)> emit) {
    control_->wait([&](Control::State& state) { return (state.ended = std::move(emit), true); });
}

HistoryEvent Engine::event_of(EventKind kind, Attachment const& attachment,
                              Operation const* operation, std::string detail) const {
    HistoryEvent event;
    event.at = clock_.now();
    event.kind = kind;
    event.pf = attachment.vf.pf;
    event.vf = attachment.vf.index;
    event.attachment = attachment.id;
    event.vm = attachment.vm;
    if (operation) event.operation = operation->id;
    event.detail = std::move(detail);
    return event;
}

Batch Engine::without(Attachment const& attachment) const {
    Batch batch;
    batch.erase_attachments.push_back(attachment.id);
    auto const desired = control_->snapshot().desired;
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

Batch Engine::quarantined(Attachment const& attachment, std::string reason,
                          std::vector<std::string> residue) const {
    Batch batch;  // not without(): lifting the quarantine restores the PF's links, too
    batch.erase_attachments.push_back(attachment.id);
    batch.save_events.push_back(event_of(EventKind::quarantined, attachment, nullptr,
                                         fmt::format("{}: {}", reason, fmt::join(residue, "; "))));
    batch.save_quarantines.push_back(
        {attachment.vf, attachment, std::move(reason), std::move(residue), clock_.now()});
    return batch;
}

}  // namespace vfmgr
