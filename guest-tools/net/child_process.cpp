// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/child_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "api/types/file_descriptor.hpp"

namespace vfmgr::guest {
namespace {

// The child's status, or an Error at the deadline, when it is killed.
Result<int> await_child(pid_t child, std::string const& program, Deadline deadline) {
    FileDescriptor const handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd ended{handle.get(), POLLIN, 0};
    auto const left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    int const ready =
        handle ? ::poll(&ended, 1, static_cast<int>(std::max<long>(left.count(), 0))) : 1;
    if (ready == 0) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (ready == 0)
        return fail(Problem::timed_out, program + " did not end in time", "see the kernel log");
    return status;
}

}  // namespace

Result<void> run_program(std::vector<std::string> arguments, Deadline deadline) {
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    auto const& program = arguments.front();
    pid_t child = 0;
    int const error =
        ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, pointers.data(), environ);
    if (error != 0)
        return fail(Problem::unsupported,
                    fmt::format("{} can't be run: {}", program, errno_name(error)),
                    fmt::format("install {}", program));
    VFMGR_TRY(int const status, await_child(child, program, deadline));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return fail(Problem::unsupported,
                fmt::format("{} ended with status {}", program, WEXITSTATUS(status)),
                fmt::format("see what it says: {}", fmt::join(arguments, " ")));
}

}  // namespace vfmgr::guest
