// SPDX-License-Identifier: Apache-2.0
// The fault dictionary: what an error number of a call of verbs or RDMA CM, an event of RDMA CM,
// the status of a work completion or a line of the kernel's log means, and one command that helps.
// Among its entries are problems that users of other tools had to ask about (RDMA.md#faults).
// Counters have their own: counters.hpp. Pure; any thread.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <optional>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::verify {

struct Fault {
    std::string_view cause;
    std::string_view command;    // or what to do where no command helps
    bool whole_machine = false;  // the log line names no device
};
[[nodiscard]] std::string remedy_of(Fault const& fault);

// `call` as in verbs.h or rdma_cma.h: "ibv_reg_mr".
[[nodiscard]] std::optional<Fault> errno_fault(std::string_view call, int error_number);

// `vendor_err` as the device reported it; 0 if it reported none.
[[nodiscard]] Fault completion_fault(ibv_wc_status status, std::uint32_t vendor_err);

// An unexpected event, with its status: -errno, or for RDMA_CM_EVENT_REJECTED the peer's reason.
[[nodiscard]] Fault cm_fault(rdma_cm_event_type event, int status);

// `line` is a line of the kernel's log, without its time.
[[nodiscard]] std::optional<Fault> log_fault(std::string_view line);

// The error of a failed verbs call: "mlx5_0: no queue pair for 16 sends", with the call as its
// cause.
[[nodiscard]] Error verbs_error(ibv_context* context, std::string detail, char const* call,
                                int error_number);

}  // namespace vfmgr::verify
