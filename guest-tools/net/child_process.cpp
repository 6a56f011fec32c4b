// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/child_process.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>

#include "api/types/child_process.hpp"

namespace vfmgr::guest {
namespace {

// Returns how the child ended. At the deadline, kills it and returns an Error.
Result<ProcessEnd> await_child(pid_t child, std::string const& program, Deadline deadline) {
    bool const ended = await_end_of(child, deadline);
    if (!ended) ::kill(child, SIGKILL);
    auto end = reap(child);
    if (ended) return end;
    return fail(Problem::timed_out, program + " did not end in time", "see the kernel log");
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
    VFMGR_TRY(auto const end, await_child(child, program, deadline));
    if (end.well) return {};
    return fail(Problem::unsupported, fmt::format("{} ended with {}", program, end.how),
                fmt::format("see what it says: {}", fmt::join(arguments, " ")));
}

}  // namespace vfmgr::guest
