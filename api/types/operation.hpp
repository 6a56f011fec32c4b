// SPDX-License-Identifier: Apache-2.0
// A plan in execution: durable, readable while it runs and for 30 days after. A value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/certificate.hpp"
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
    rekey_pf
};
template <>
inline constexpr std::array<EnumName<OperationKind>, 11> enum_names<OperationKind> = {
    {{OperationKind::configure_pf, "configure_pf"},
     {OperationKind::attach, "attach"},
     {OperationKind::detach, "detach"},
     {OperationKind::verify, "verify"},
     {OperationKind::restore, "restore"},
     {OperationKind::configure_firmware, "configure_firmware"},
     {OperationKind::add_rdma_link, "add_rdma_link"},
     {OperationKind::remove_rdma_link, "remove_rdma_link"},
     {OperationKind::end_gone_pf, "end_gone_pf"},
     {OperationKind::confirm_gone_pf, "confirm_gone_pf"},
     {OperationKind::rekey_pf, "rekey_pf"}}};

enum class OperationState { queued, running, succeeded, failed };
template <>
inline constexpr std::array<EnumName<OperationState>, 4> enum_names<OperationState> = {
    {{OperationState::queued, "queued"},
     {OperationState::running, "running"},
     {OperationState::succeeded, "succeeded"},
     {OperationState::failed, "failed"}}};

enum class StepState { planned, intended, done, failed, undone };
template <>
inline constexpr std::array<EnumName<StepState>, 5> enum_names<StepState> = {
    {{StepState::planned, "planned"},
     {StepState::intended, "intended"},
     {StepState::done, "done"},
     {StepState::failed, "failed"},
     {StepState::undone, "undone"}}};

struct OperationStep {
    std::string sentence;  // "bind VF 2 (0000:01:10.4) to vfio-pci"
    StepState state = StepState::planned;
    // Refusals that best_effort allowed, values that could not be read back, and what to check
    // afterwards; one sentence each.
    std::vector<std::string> remarks{};
    bool operator==(OperationStep const&) const = default;
};

struct Operation {
    std::string id;
    OperationKind kind = OperationKind::configure_pf;
    OperationState state = OperationState::queued;
    std::string subject;  // API path of the object: /v1/attachments/3f9c2b1d
    std::vector<OperationStep> steps;
    std::optional<Error> problem;
    std::optional<Certificate> certificate;  // of the VF that it detached
    std::string requested_by;                // uid:0, token:<id>, daemon
    std::string request_id{};                // id of the request that started it; may be empty
    Time created_at{};
    std::optional<Time> finished_at;
    bool operator==(Operation const&) const = default;
};

[[nodiscard]] inline bool finished(Operation const& operation) {
    return operation.state == OperationState::succeeded ||
           operation.state == OperationState::failed;
}

extern template struct Json<OperationStep>;
extern template struct Json<Operation>;

}  // namespace vfmgr
