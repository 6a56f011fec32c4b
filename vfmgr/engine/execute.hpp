// SPDX-License-Identifier: Apache-2.0
// The only way to change the host: journal, perform, observe, for each step of a plan. Called on an
// operation's thread, under its claims.
#pragma once

#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfmgr/engine/claims.hpp"
#include "vfmgr/engine/control.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// What every operation works with. References outlive all operations.
struct Seams {
    Kernel& kernel;
    Hypervisor& hypervisor;
    Control& control;
    Clock& clock;
    StepGate* gate = nullptr;                      // absent: nothing stops between two steps
    Cancellations const* cancellations = nullptr;  // absent: no operation can be cancelled
};

// undo: restore everything that was changed, also when a client cancels it. stop: leave it, except
// for what the failed step changes only while it runs; the caller goes on from the observed state.
// go_on: do the remaining steps, which do not need the failed one.
enum class OnFailure { undo, stop, go_on };

struct Failure {
    Error error;
    Step step;  // the first one that failed
    // What could not be restored; with go_on, what could not be done. Empty: nothing is left.
    std::vector<std::string> residue;
};

struct ObservedOnTheWay {
    // Can't be observed afterwards; absent: no VF was reset.
    std::optional<Time> reset_done_at;
    std::optional<VfCounters> counters;  // right before the reset, where the driver reports them
    KernelView left;                     // the plan's PFs, as they are after its last step
    std::optional<HypervisorView> vm{};  // the latest step's VM, as it was read back
    std::map<VfId, std::uint32_t> node_owners{};  // before external holders got the nodes
};

// What a plan was made from.
struct PlannedFrom {
    // Has what the plan's steps change, observed under the operation's claims just now.
    HostView const& host;
    // The first step's record, if the journal has it already.
    std::optional<JournalRecord> first{};
};

// Writes to `batch`, which begins the operation, what its first step is about to do, with the undo,
// and returns it for execute(): this saves a commit. Nothing if the plan has no step of the host,
// or `host` has not what it changes.
[[nodiscard]] std::optional<JournalRecord> intend_first(Operation& operation, Plan const& plan,
                                                        HostView const& host, Batch& batch);

// Keeps `operation` up to date, in the store as well, with each step's state and remarks.
[[nodiscard]] tl::expected<ObservedOnTheWay, Failure> execute(
    Seams const& seams, Operation& operation, Plan const& plan, OnFailure on_failure,
    std::optional<PlannedFrom> planned_from = {});

// Performs the journal's undo steps, newest first. Returns the residue.
[[nodiscard]] std::vector<std::string> undo(Seams const& seams, Operation& operation,
                                            std::vector<JournalRecord> records);

// Restores, of that undo, only what steps change while they run, for a caller that goes on from the
// observed state. Returns the residue.
[[nodiscard]] std::vector<std::string> restore_values(Seams const& seams,
                                                      std::vector<JournalRecord> const& records);

// Whether a client has cancelled the operation. What ends for it has the error cancelled().
[[nodiscard]] bool is_cancelled(Seams const& seams, std::string const& operation);
[[nodiscard]] Error cancelled();

// Observes and publishes a part of the kernel's state.
[[nodiscard]] Result<KernelView> observe_kernel(Seams const& seams, KernelScope const& scope);

// Returns a view for planning: `scope` and every domain read just now, over the published rest.
// Publishes what it read.
[[nodiscard]] Result<HostView> observe_for(Seams const& seams, KernelScope const& scope);

[[nodiscard]] std::vector<OperationStep> planned_steps(Plan const& plan);

// Contains exceptions on threads that serve many clients: one client's exception must not end the
// thread for all.

// Runs `work`. Returns what it threw, or nothing.
template <class Work>
[[nodiscard]] std::optional<std::string> exception_of(Work&& work) {
    try {
        work();
    } catch (std::exception const& bug) {
        return bug.what();
    } catch (...) {
        return "an exception of an unknown type";
    }
    return std::nullopt;
}

}  // namespace vfmgr
