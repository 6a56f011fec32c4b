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
#include <vector>

#include "api/os/descriptor.hpp"
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
// For calls that return an error number: success for 0.
[[nodiscard]] Result<void> verbs_result(ibv_context* context, std::string_view detail,
                                        char const* call, int error_number);

// Kernel log lines during the tests, as far as the fault dictionary knows them. Reads /dev/kmsg
// (Documentation/ABI/testing/dev-kmsg), which needs root or CAP_SYSLOG; without it nothing is
// found. One thread.

struct LoggedFault {
    std::string line;
    Fault fault;
};

// "6,1234,5678,-;igbvf 0000:00:05.0: Link is Down\n SUBSYSTEM=pci\n": returns the text between;
// nullopt if it is not a record.
[[nodiscard]] std::optional<std::string_view> text_of_record(std::string_view record);

class KernelLog {
  public:
    // Starts with records logged from now on.
    [[nodiscard]] static KernelLog follow(std::string const& path = "/dev/kmsg");
    // Returns the first line since then that the dictionary knows and that contains one of `names`;
    // a fault of the whole machine needs no name. Nothing if there is none.
    [[nodiscard]] std::optional<LoggedFault> find(std::vector<std::string> const& names);

  private:
    FileDescriptor log_;
};

// Names that kernel drivers use for a netdev: its own name, and its PCI address.
[[nodiscard]] std::vector<std::string> names_in_log(std::string const& ifname,
                                                    std::string const& sysfs = "/sys");

}  // namespace vfmgr::verify
