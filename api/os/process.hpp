// SPDX-License-Identifier: Apache-2.0
// Starts another program, waits for its end, and reaps it. Any thread, one per process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct ProcessOptions {
    std::vector<std::string> arguments;  // the first is the program's name
    std::string program{};               // its path; empty: the name, searched for in PATH
    // The caller's descriptors and their numbers in the program. The caller's are higher than all
    // of the program's: otherwise one copy closes what the next one copies.
    std::vector<std::pair<int, int>> descriptors{};
    std::optional<int> close_from{};                        // closes these and all above
    std::optional<std::vector<std::string>> environment{};  // absent: the caller's
};
// Starts it with no signal blocked. Fails with the errno of posix_spawn(3).
[[nodiscard]] tl::expected<pid_t, int> spawn(ProcessOptions options);

// Waits until any process, not only a child, ends or the deadline passes. True if it ended.
[[nodiscard]] bool await_end_of(pid_t pid, Deadline deadline);

struct ProcessEnd {
    int exit_status = -1;  // 128 + the signal that ended it
    std::string how;       // "exit status 1", "signal 9"
    [[nodiscard]] bool well() const { return exit_status == 0; }
};
// Waits for a child without a deadline, and reaps it.
[[nodiscard]] ProcessEnd reap(pid_t pid);
// Kills and reaps the child if it has not ended by the deadline, and returns nullopt then.
[[nodiscard]] std::optional<ProcessEnd> end_by(pid_t pid, Deadline deadline);

// Returns the two ends of a stream or message socket, closed by execve(2). Fails with errno.
[[nodiscard]] tl::expected<std::pair<FileDescriptor, FileDescriptor>, int> socket_pair(int type);

}  // namespace vfmgr
