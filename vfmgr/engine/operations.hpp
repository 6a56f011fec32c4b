// SPDX-License-Identifier: Apache-2.0
// Operations: each accepted one runs on a thread of its own, under claims, within the places of its
// kind, and ends durably. Owned by the engine; any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "vfmgr/engine/claims.hpp"
#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/plan/bounds.hpp"

namespace vfmgr {

inline constexpr std::chrono::milliseconds full_disk_retry{200};

class Operations {
  public:
    using Work = std::function<void(Operation&)>;
    struct Hooks {
        std::function<void()> changed;  // the host may have changed: observe it again
        // Ends an operation that an exception cut short, on its thread.
        std::function<void(Operation&, std::string const& exception)> cut_short;
    };
    Operations(Kernel& kernel, Hypervisor& hypervisor, Control& control, Clock& clock, Hooks hooks,
               HostBounds bounds = {});
    Operations(Operations const&) = delete;
    Operations& operator=(Operations const&) = delete;

    [[nodiscard]] Seams const& seams() const { return seams_; }
    [[nodiscard]] Claims& claims() { return claims_; }
    [[nodiscard]] Places& places() { return places_; }
    [[nodiscard]] bool stopping() const { return stopping_; }

    // Stores the operation and starts it. On the control thread.
    [[nodiscard]] Result<Operation> accept(Control::State& state, Operation operation,
                                           Intent const& intent, Work work,
                                           PlaceRequest const& place = {});
    // Runs `work`, which throws nothing, on a thread of its own.
    [[nodiscard]] Result<void> spawn(std::function<void()> work);
    // Waits for the keys; fails if the operation is cancelled before it has them.
    [[nodiscard]] Result<Held> claim(Operation const& operation, ClaimKeys keys);
    // Has the operation stop where nothing is left half done: before it has its claims, between two
    // steps, which are then undone, or while it waits for a VM. On the control thread.
    [[nodiscard]] Result<void> cancel(Control::State& state, Operation const& operation);
    // Ends the operation with the outcome of `work`, which runs under claims of `keys`. The Batch
    // is stored with its end.
    void run(Operation& operation, ClaimKeys keys, std::function<Result<Batch>()> const& work);
    // Fails with forbidden if root's bounds do not allow the plan, which was made from `host`.
    [[nodiscard]] Result<void> check_bounds(HostView const& host, Plan const& plan) const {
        return within(bounds_, host, plan);
    }
    // Does nothing if the plan is beyond the bounds. Its steps become the operation's; an Error
    // names what is left behind.
    [[nodiscard]] Result<void> perform(Operation& operation, Plan const& plan,
                                       OnFailure on_failure);
    void finish(Operation& operation, Result<void> const& outcome, Batch batch);
    // The same, with an end that is decided on the control thread, from the state at that time.
    struct End {
        Result<void> outcome;
        Batch batch;  // stored either way
    };
    void finish(Operation& operation, std::function<End(DesiredState const&)> const& decide);
    // Ends it without undoing its steps. If even that throws, the journal still has it, and the
    // next start's recovery ends it.
    void end_by_exception(Operation& operation, std::string const& what);
    // Writes a change that the host already has: waits while the disk is full or fails. False when
    // the daemon stops first; the journal then leaves it to recovery.
    bool commit_at_last(Batch const& batch);
    // The same, for a batch made on the control thread from the state at that time.
    bool commit_at_last(std::function<Batch(DesiredState const&)> const& make);
    [[nodiscard]] std::uint64_t next_revision();
    // Returns once it is in force, so that what is read then can't be taken away: see
    // Control::State::pledge().
    void pledge(Operation const& operation, std::vector<VfSpec> settings);

    // Ends waits for the disk. Operations look at stopping() themselves.
    void stop_waiting();
    // False: some still run at `patience`, but none is in the middle of a kernel step, and none
    // begins one any more.
    [[nodiscard]] bool stop(Deadline patience);
    void join();  // until all have ended, whatever it takes

  private:
    Hooks const hooks_;
    HostBounds const bounds_;
    StepGate gate_;
    Cancellations cancellations_;
    Seams const seams_;
    Claims claims_;
    Places places_;
    std::atomic<bool> stopping_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t running_ = 0;  // mutex_
};

// What each part of the engine has: the operations, and what they work with.
class EnginePart {
  public:
    EnginePart(EnginePart const&) = delete;
    EnginePart& operator=(EnginePart const&) = delete;

  protected:
    explicit EnginePart(Operations& operations) : operations_(operations) {}
    ~EnginePart() = default;
    [[nodiscard]] Seams const& seams() const { return operations_.seams(); }

    Operations& operations_;
};

[[nodiscard]] Error no_such_operation(std::string const& id);
[[nodiscard]] Operation new_operation(OperationKind kind, std::string subject, Time now);
// "/v1/pfs/0000:01:00.0", "/v1/attachments/3f9c2b1d": subjects of operations.
[[nodiscard]] std::string subject_of(PciAddress const& pf);
[[nodiscard]] std::string attachment_subject(std::string const& id);
// The sentences of the steps that it did.
[[nodiscard]] std::string what_was_done(Operation const& operation);
[[nodiscard]] Event event_of(EventKind kind, Attachment const& attachment,
                             Operation const* operation, std::string detail, Time at);
// Returns an event that is about the PF itself; the operation caused it.
[[nodiscard]] Event event_of(EventKind kind, PciAddress const& pf, Operation const& operation,
                             std::string detail, Time at);

}  // namespace vfmgr
