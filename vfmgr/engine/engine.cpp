// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>

#include "vfmgr/engine/exception_of.hpp"

namespace vfmgr {

using namespace std::chrono_literals;

// A look at a thousand VFs takes seconds where CPUs are slow or taken.
constexpr auto rest_max = 15s;
// Refusals of one client that wait for a fresh look; further ones are answered without it.
constexpr std::ptrdiff_t awaiting_each_max = 16;

std::string random_id(std::size_t digits) {
    std::array<unsigned char, 16> bytes{};
    // 16 bytes never block or come short once the kernel's pool is ready (getrandom(2)).
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) abort();
    std::string text;
    for (auto const byte : bytes) text += fmt::format("{:02x}", byte);
    return text.substr(0, digits);
}

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
      // What was being changed was not judged: now it can be.
      claims_([this] { look_again(); }) {}

void Engine::stop_waiting() {
    stopping_ = true;
    look_again();
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
        std::lock_guard const lock(look_mutex_);
        observing_ = true;
    }
    observer_ = std::thread([this] { observe_loop(); });
}

void Engine::look_again() {
    {
        std::lock_guard const lock(look_mutex_);
        look_ = true;
    }
    look_wake_.notify_all();
}

void Engine::look_at_once() {
    {
        std::lock_guard const lock(look_mutex_);
        look_ = at_once_ = true;
    }
    look_wake_.notify_all();
}

bool Engine::after_a_look(std::string const& client, std::function<void(Control::State&)> task) {
    {
        std::lock_guard const lock(look_mutex_);
        if (!observing_) return false;
        if (std::ranges::count(awaiting_, client, &Awaiting::client) >= awaiting_each_max)
            return false;
        awaiting_.push_back({client, std::move(task)});
    }
    look_wake_.notify_all();
    return true;
}

void Engine::judge_what_is_seen() {
    auto seen = see_drift();
    // Who reads files first tells late of what matters most.
    if (std::ranges::any_of(seen.drift, is_loss))
        control_->post(
            [this, losses = seen.losses()](Control::State& state) { tell_drift(state, losses); });
    look_for_owners(seen);
    control_->post([this, seen = std::move(seen)](Control::State& state) {
        learn_identities(state);
        repair_links(state);
        tell_drift(state, seen);
        repair_drift(state, seen);
    });
}

void Engine::observe_loop() {
    std::unique_lock lock(look_mutex_);
    while (observing_) {
        observing_ = !stopping_;  // those who wait already still have their look
        auto const awaiting = std::exchange(awaiting_, {});
        // By recover(), and nothing has told of a change or made one since.
        bool const is_seen = std::exchange(seen_at_start_, false) && !look_ && awaiting.empty() &&
                             claims_.taken_meanwhile().empty();
        look_ = at_once_ = false;
        lock.unlock();
        auto const began = clock_.steady_now();
        auto const look = [&] {
            if (!is_seen) {
                claims_.look_begins();
                // An unreadable host stays published as it was; operations look for themselves.
                static_cast<void>(observe_for(seams_, std::nullopt).has_value());
            }
            judge_what_is_seen();
        };
        if (auto const bug = exception_of(look))
            control_->report_bug("an exception ended a look at the host: " + *bug);
        for (auto const& one : awaiting) control_->post(one.task);
        auto const took = clock_.steady_now() - began;
        lock.lock();
        auto const asked = [this] { return !awaiting_.empty() || stopping_.load(); };
        look_wake_.wait_for(lock, 5s, [&] { return look_ || asked(); });
        // However much happens on the host, looking at it takes a tenth of a CPU at most, and half
        // of one while VMs change: only those who wait for a look are not kept waiting.
        look_wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(took, rest_max), asked);
        look_wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(8 * took, rest_max),
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
    return fail(Problem::unavailable, "the host gives vfmgrd no more threads: " + *none,
                "see what else runs there, and what limits threads: systemctl show vfmgrd -p "
                "TasksMax");
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
    static_cast<void>(exception_of(
        [&] { control_->report_bug(fmt::format("{}; and its end: {}", detail, *again)); }));
}

void Engine::finish(Operation& operation, Result<void> const& outcome, Batch batch) {
    operation.state = outcome ? OperationState::succeeded : OperationState::failed;
    if (!outcome) operation.problem = outcome.error();
    operation.finished_at = clock_.now();
    batch.save_operations.push_back(operation);
    batch.erase_records_of.push_back(operation.id);
    if (commit_at_last(batch)) look_again();
}

bool Engine::commit_at_last(Batch const& batch) {
    return commit_at_last([&](DesiredState const&) { return batch; });
}

bool Engine::commit_at_last(std::function<Batch(DesiredState const&)> const& make) {
    auto const written = [&](Control::State& state) {
        return state.commit(make(state.desired())).has_value();
    };
    while (!control_->wait(written)) {
        std::unique_lock lock(look_mutex_);
        if (look_wake_.wait_for(lock, full_disk_retry, [this] { return stopping_.load(); }))
            return false;
    }
    return true;
}

void Engine::on_event(std::function<void(HistoryEvent const&)> tell) {
    control_->wait([&](Control::State& state) { return (state.tell = std::move(tell), true); });
}

void Engine::on_operation(std::function<void(Operation const&)> tell) {
    control_->wait([&](Control::State& state) { return (state.ended = std::move(tell), true); });
}

HistoryEvent Engine::event_of(EventKind kind, Attachment const& lease, Operation const* operation,
                              std::string detail) const {
    HistoryEvent event;
    event.at = clock_.now();
    event.kind = kind;
    event.pf = lease.vf.pf;
    event.vf = lease.vf.index;
    event.attachment = lease.id;
    event.vm_name = lease.vm_name;
    if (operation) event.operation = operation->id;
    event.detail = std::move(detail);
    return event;
}

Batch Engine::without(Attachment const& lease) const {
    Batch batch;
    batch.erase_attachments.push_back(lease.id);
    auto const desired = control_->snapshot().desired;
    bool last = true;
    for (auto const& [id, other] : desired->attachments)
        if (id != lease.id && other.vf.pf == lease.vf.pf) last = false;
    for (auto const& [vf, quarantine] : desired->quarantine)
        if (vf != lease.vf && vf.pf == lease.vf.pf) last = false;
    auto const pf = desired->pfs.find(lease.vf.pf);
    if (last && pf != desired->pfs.end()) {
        auto plain = pf->second;
        plain.base.reset();
        batch.save_pfs.emplace_back(lease.vf.pf, std::move(plain));
    }
    return batch;
}

Batch Engine::quarantined(Attachment const& lease, std::string reason,
                          std::vector<std::string> residue) const {
    Batch batch;  // not without(): who lifts the quarantine puts the PF's links back, too
    batch.erase_attachments.push_back(lease.id);
    batch.save_events.push_back(event_of(EventKind::quarantined, lease, nullptr,
                                         fmt::format("{}: {}", reason, fmt::join(residue, "; "))));
    batch.save_quarantines.push_back(
        {lease.vf, lease, std::move(reason), std::move(residue), clock_.now()});
    return batch;
}

}  // namespace vfmgr
