// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/operations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

#include "api/os/random.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/timing.hpp"

namespace vfmgr {
namespace {

// The others end what they have begun: a VF that is half detached is of no use to anybody.
bool can_be_cancelled(OperationKind kind) {
    switch (kind) {
        case OperationKind::configure_pf:
        case OperationKind::attach:
        case OperationKind::verify:
        case OperationKind::add_rdma_link:
        case OperationKind::remove_rdma_link:
        case OperationKind::apply:
        case OperationKind::change_attachment:
        case OperationKind::place_hostdevs:
            return true;
        case OperationKind::detach:
        case OperationKind::restore:
        case OperationKind::configure_firmware:
        case OperationKind::end_gone_pf:
        case OperationKind::confirm_gone_pf:
        case OperationKind::rekey_pf:
            return false;
    }
    return false;
}

}  // namespace

Operations::Operations(Kernel& kernel, Hypervisor& hypervisor, Control& control, Clock& clock,
                       Hooks hooks, HostBounds bounds)
    : hooks_(std::move(hooks)),
      bounds_(std::move(bounds)),
      seams_{kernel, hypervisor, control, clock, &gate_, &cancellations_},
      // Drift under a claim was not judged: now it can be.
      claims_([this] { hooks_.changed(); }) {}

Result<Operation> Operations::accept(Control::State& state, Operation operation,
                                     Intent const& intent, Work work, PlaceRequest const& place) {
    VFMGR_CHECK(places_.enter(operation.id, place));
    Batch batch;
    batch.save_operations.push_back(operation);
    if (!intent.idempotency_key.empty())
        batch.save_idempotency.push_back(
            {intent.idempotency_key, intent.request_hash, operation.id, seams_.clock.now()});
    if (auto const written = state.commit(std::move(batch)); !written) {
        places_.leave(operation.id);
        return fail(written.error());
    }
    if (can_be_cancelled(operation.kind)) cancellations_.begin(operation.id);
    auto const accepted = seams_.clock.steady_now();
    auto const launched = spawn([this, operation, accepted, work = std::move(work)]() mutable {
        Stopwatch const stopwatch(seams_.clock, accepted);
        if (auto const what = exception_of([&] { work(operation); }))
            hooks_.cut_short(operation, *what);
        cancellations_.end(operation.id);
        places_.leave(operation.id);
    });
    if (!launched) {
        cancellations_.end(operation.id);
        places_.leave(operation.id);
        // The operation is recorded already, with its Idempotency-Key, so it records why it failed.
        operation.state = OperationState::failed;
        operation.problem = launched.error();
        operation.finished_at = seams_.clock.now();
        Batch end;
        end.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(std::move(end)));
    }
    return operation;
}

Result<void> Operations::spawn(std::function<void()> work) {
    {
        std::lock_guard const lock(mutex_);
        ++running_;
    }
    auto const ended = [this] {
        std::lock_guard const lock(mutex_);
        --running_;
        changed_.notify_all();
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

Result<Held> Operations::claim(Operation const& operation, ClaimKeys keys) {
    auto claim = claims_.take(std::move(keys), [&] { return is_cancelled(seams_, operation.id); });
    if (!claim) return fail(cancelled());
    return std::move(*claim);
}

Result<void> Operations::cancel(Control::State& state, Operation const& operation) {
    auto const name = fmt::format("operation {} ({})", operation.id, enum_name(operation.kind));
    if (finished(operation))
        return fail(Problem::conflict, fmt::format("{} has ended", name), "no action is needed");
    if (!can_be_cancelled(operation.kind))
        return fail(Problem::conflict,
                    fmt::format("{} can't be cancelled: what it has begun must be ended", name),
                    fmt::format("wait for it: vfctl op wait {}", operation.id));
    if (!cancellations_.request(operation.id))
        return fail(Problem::conflict, fmt::format("{} is just ending", name),
                    fmt::format("see how it ended: vfctl op show {}", operation.id));
    claims_.look_again();
    state.look_again();
    return {};
}

void Operations::run(Operation& operation, ClaimKeys keys,
                     std::function<Result<Batch>()> const& work) {
    auto const claimed = claim(operation, std::move(keys));
    auto outcome = claimed ? work() : fail(claimed.error());
    if (outcome) return finish(operation, {}, std::move(*outcome));
    finish(operation, fail(std::move(outcome.error())), {});
}

Result<void> Operations::perform(Operation& operation, Plan const& plan, OnFailure on_failure) {
    VFMGR_CHECK(check_bounds(*seams_.control.snapshot().host, plan));
    operation.state = OperationState::running;
    operation.steps = planned_steps(plan);
    auto const done = execute(seams_, operation, plan, on_failure);
    if (done) return {};
    auto error = done.error().error;
    if (auto const& residue = done.error().residue; !residue.empty())
        error.detail += fmt::format("; left behind: {}", fmt::join(residue, "; "));
    return fail(std::move(error));
}

void Operations::finish(Operation& operation, Result<void> const& outcome, Batch batch) {
    finish(operation, [&](DesiredState const&) { return End{outcome, batch}; });
}

void Operations::finish(Operation& operation,
                        std::function<End(DesiredState const&)> const& decide) {
    operation.spans = Stopwatch::spans();
    auto const ended = [&](DesiredState const& now) {
        auto [outcome, batch] = decide(now);
        operation.state = outcome ? OperationState::succeeded : OperationState::failed;
        operation.problem = outcome ? std::nullopt : std::optional(outcome.error());
        operation.finished_at = seams_.clock.now();
        batch.save_operations.push_back(operation);
        batch.erase_records_of.push_back(operation.id);
        return batch;
    };
    if (commit_at_last(ended)) hooks_.changed();
}

void Operations::end_by_exception(Operation& operation, std::string const& what) {
    auto const detail = fmt::format("an exception ended operation {}: {}", operation.id, what);
    auto const again = exception_of([&] {
        seams_.control.report_bug(detail);
        finish(operation, fail(Problem::internal, detail, "report this with the daemon's log"), {});
    });
    if (!again) return;
    static_cast<void>(exception_of([&] {
        seams_.control.report_bug(fmt::format(
            "{}; another exception prevented its end from being stored: {}", detail, *again));
    }));
}

bool Operations::commit_at_last(Batch const& batch) {
    return commit_at_last([&](DesiredState const&) { return batch; });
}

bool Operations::commit_at_last(std::function<Batch(DesiredState const&)> const& make) {
    auto const span = timed(SpanKind::commit, "end");
    auto const written = [&](Control::State& state) {
        return state.commit(make(state.desired())).has_value();
    };
    while (!seams_.control.wait(written)) {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, full_disk_retry, [this] { return stopping_.load(); }))
            return false;
    }
    return true;
}

std::uint64_t Operations::next_revision() {
    return seams_.control.wait([](Control::State& state) { return state.next_revision(); });
}

void Operations::pledge(Operation const& operation, std::vector<VfSpec> settings) {
    seams_.control.wait([&](Control::State& state) {
        state.pledge(operation.id, std::move(settings));
        return true;
    });
}

void Operations::stop_waiting() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
}

bool Operations::stop(Deadline patience) {
    {
        std::unique_lock lock(mutex_);
        if (changed_.wait_until(lock, patience, [this] { return running_ == 0; })) return true;
    }
    gate_.shut();
    return false;
}

void Operations::join() {
    gate_.open();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
}

Error no_such_operation(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no operation {}", id),
            "operations are kept for 30 days; vfctl op list shows them"};
}

Operation new_operation(OperationKind kind, std::string subject, Time now) {
    Operation operation;
    operation.id = random_hex(8);
    operation.kind = kind;
    operation.subject = std::move(subject);
    operation.created_at = now;
    return operation;
}

std::string subject_of(PciAddress const& pf) {
    return "/v1/pfs/" + to_string(pf);
}

std::string attachment_subject(std::string const& id) {
    return "/v1/attachments/" + id;
}

Event event_of(EventKind kind, Attachment const& attachment, Operation const* operation,
               std::string detail, Time at) {
    Event event;
    event.at = at;
    event.kind = kind;
    set_attachment(event, attachment);
    if (operation) event.operation = operation->id;
    event.detail = std::move(detail);
    return event;
}

std::string what_was_done(Operation const& operation) {
    std::vector<std::string> done;
    for (auto const& step : operation.steps)
        if (step.state == StepState::done) done.push_back(step.sentence);
    return fmt::format("done: {}", fmt::join(done, "; "));
}

Event event_of(EventKind kind, PciAddress const& pf, Operation const& operation, std::string detail,
               Time at) {
    Event event;
    event.at = at;
    event.kind = kind;
    event.pf = pf;
    event.operation = operation.id;
    event.detail = std::move(detail);
    return event;
}

}  // namespace vfmgr
