// SPDX-License-Identifier: Apache-2.0
// The end of a process that this one started. Free functions; any thread, one for each process.
#pragma once

#include <sys/types.h>

#include <string>

#include "api/types/time.hpp"

namespace vfmgr {

// Until it has ended, or the deadline: whether it has. Any process, not only a child.
[[nodiscard]] bool await_end_of(pid_t pid, Deadline deadline);

struct ProcessEnd {
    bool well = false;  // with exit status 0
    std::string how;    // "exit status 1", "signal 9"
};
// Waits for a child without a deadline, and buries it.
[[nodiscard]] ProcessEnd bury(pid_t pid);

}  // namespace vfmgr
