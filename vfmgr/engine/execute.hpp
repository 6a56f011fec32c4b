// SPDX-License-Identifier: Apache-2.0
// The one way in which the host is changed: journal, perform, observe, for each step of a plan.
// Called on an operation's thread, under its claims.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/engine/control.hpp"
#include "vfmgr/engine/step_gate.hpp"
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
    StepGate* gate = nullptr;  // absent: nobody stops between two steps
};

// undo: put everything back that was done. stop: leave it, but for what the failed step changed
// only for as long as it lasts; the caller goes on from what is. go_on: do the steps that are left,
// which do not need the one that failed.
enum class OnFailure { undo, stop, go_on };

struct Failure {
    Error error;
    Step step;  // the first one that failed
    // What could not be put back, or could not be done where others were; empty: nothing is left.
    std::vector<std::string> residue;
};

// What was seen on the way and is not to be seen any more; absent: no VF was reset.
struct SeenOnTheWay {
    std::optional<Time> reset_done_at;
    std::optional<VfCounters> counters;  // right before the reset, where the driver tells them
};

// `operation` is kept up to date, in the store as well, with each step's state and remarks.
[[nodiscard]] tl::expected<SeenOnTheWay, Failure> execute(Seams const& seams, Operation& operation,
                                                          Plan const& plan, OnFailure on_failure);

// Performs the journal's undo steps, newest first. Returns the residue.
[[nodiscard]] std::vector<std::string> undo(Seams const& seams, Operation& operation,
                                            std::vector<JournalRecord> records);

// Of that undo only what steps change for as long as they last, for who goes on from what is.
// Returns the residue.
[[nodiscard]] std::vector<std::string> put_values_back(Seams const& seams,
                                                       std::vector<JournalRecord> const& records);

// A part of what the kernel has, as it is now; published on the way.
[[nodiscard]] Result<KernelView> observe_kernel(Seams const& seams, KernelScope const& scope);

// A view for planning: what was read just now of `scope` and of every domain, over what is
// published of the rest; published on the way.
[[nodiscard]] Result<HostView> observe_for(Seams const& seams, KernelScope const& scope);

[[nodiscard]] std::vector<OperationStep> planned_steps(Plan const& plan);

}  // namespace vfmgr
