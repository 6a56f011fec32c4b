// SPDX-License-Identifier: Apache-2.0
// Waits for the end of a process started here. Free functions; any thread, one per process.
#pragma once

#include <sys/types.h>

#include <string>

#include "api/types/time.hpp"

namespace vfmgr {

// Waits until any process, not only a child, ends or the deadline passes. True if it ended.
[[nodiscard]] bool await_end_of(pid_t pid, Deadline deadline);

struct ProcessEnd {
    bool well = false;  // exit status 0
    std::string how;    // "exit status 1", "signal 9"
};
// Waits for a child without a deadline, and reaps it.
[[nodiscard]] ProcessEnd reap(pid_t pid);

}  // namespace vfmgr
