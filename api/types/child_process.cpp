// SPDX-License-Identifier: Apache-2.0
#include "api/types/child_process.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "api/types/event.hpp"

namespace vfmgr {

bool await_end_of(pid_t pid, Deadline deadline) {
    FileDescriptor const process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return errno == ESRCH;
    auto const ready = await_readable(std::array{process.get()}, deadline);
    return ready && *ready == Readiness::readable;
}

ProcessEnd reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return {false, "nobody knows how"};
    if (WIFSIGNALED(status)) return {false, fmt::format("signal {}", WTERMSIG(status))};
    return {WEXITSTATUS(status) == 0, fmt::format("exit status {}", WEXITSTATUS(status))};
}

}  // namespace vfmgr
