// SPDX-License-Identifier: Apache-2.0
// The fault dictionary: what an error number of a call of verbs or RDMA CM, an event of RDMA CM,
// the status of a work completion or a line of the kernel's log means, and one command that helps.
// Its entries are what users of other tools had to ask about (verification.md, what users of the
// peers complain about). Counters have their own: counters.hpp. Pure; any thread.
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
    std::string_view command;    // or what to do where no command does it
    bool whole_machine = false;  // a line of the log names no device
};
[[nodiscard]] std::string remedy_of(Fault const& fault);

// `call` as in verbs.h or rdma_cma.h: "ibv_reg_mr".
[[nodiscard]] std::optional<Fault> errno_fault(std::string_view call, int error_number);

// `vendor_err` as the device gave it; 0 when it gave none.
[[nodiscard]] Fault completion_fault(ibv_wc_status status, std::uint32_t vendor_err);

// An event that was not awaited, with its status: -errno, or of RDMA_CM_EVENT_REJECTED the reason
// that the other end gave.
[[nodiscard]] Fault cm_fault(rdma_cm_event_type event, int status);

// Of a line of the kernel's log, without its time.
[[nodiscard]] std::optional<Fault> log_fault(std::string_view line);

// A verbs call that failed: "mlx5_0: no queue pair for 16 sends", the call as its cause.
[[nodiscard]] Error verbs_error(ibv_context* context, std::string detail, char const* call,
                                int error_number);

}  // namespace vfmgr::verify
