// SPDX-License-Identifier: Apache-2.0
// A plan in execution: durable, readable while it runs and for 30 days after. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class OperationKind {
    configure_pf,
    attach,
    detach,
    verify,
    restore,
    configure_firmware,
    add_rdma_link,
    remove_rdma_link,
    end_gone_pf,
    confirm_gone_pf,
    rekey_pf,
    apply,
    change_attachment,
    place_hostdevs
};

enum class OperationState { queued, running, succeeded, failed };

enum class StepState { planned, intended, done, failed, undone };

struct OperationStep {
    std::string sentence;  // "bind VF 2 (0000:01:10.4) to vfio-pci"
    StepState state = StepState::planned;
    // Refusals that best_effort allowed, values that could not be read back, and what to check
    // afterwards; one sentence each.
    std::vector<std::string> remarks{};
    bool operator==(OperationStep const&) const = default;
};

// What a part of an operation's time was spent on: waiting for others, for the store, or for the
// VM's report; observing the host; planning; a step, or its undo.
enum class SpanKind { claim, observe, plan, commit, step, undo, guest };

struct Span {
    SpanKind kind = SpanKind::step;
    std::string what;           // "PF 0000:01:00.0", or the step's sentence
    std::int64_t began_us = 0;  // since the operation was accepted
    std::int64_t took_us = 0;
    std::optional<std::string> step{};  // of a step or its undo: its kind, such as "bind_vfs"
    bool operator==(Span const&) const = default;
};

struct Operation {
    std::string id;
    OperationKind kind = OperationKind::configure_pf;
    OperationState state = OperationState::queued;
    std::string subject;  // API path of the object: /v1/attachments/3f9c2b1d
    std::vector<OperationStep> steps;
    std::optional<Error> problem;
    std::optional<Certificate> certificate;  // of the VF that it detached
    std::string requested_by;                // uid:0, token:<id>, cert:<name>, daemon
    std::string request_id{};                // id of the request that started it; may be empty
    Time created_at{};
    std::optional<Time> finished_at;
    std::optional<std::string> vm_uuid{};    // of the VM that it is about
    std::vector<std::string> attachments{};  // ids, if it is about several
    // In the order of time; what is missing was spent on other code. Empty until it has ended.
    std::vector<Span> spans{};
    bool operator==(Operation const&) const = default;
};

[[nodiscard]] inline bool finished(Operation const& operation) {
    return operation.state == OperationState::succeeded ||
           operation.state == OperationState::failed;
}

// A plan as a client reads it. A step has further members, which depend on its kind.
struct PlannedStep {
    std::string sentence;
};
struct PlanView {
    std::vector<PlannedStep> steps;
    std::vector<std::string> blast_radius;  // who and what is affected
    std::vector<std::string> notes;         // what was chosen
};
// The answer to a dry run.
struct DryRun {
    PlanView plan;
    std::optional<Attachment> attachment;   // as it would be
    std::vector<Attachment> attachments{};  // of a request for several, in its order
};

extern template struct Json<PlanView>;
extern template struct Json<DryRun>;
extern template struct Json<Operation>;

}  // namespace vfmgr
