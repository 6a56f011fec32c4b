// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/child_process.hpp"

#include <fmt/format.h>

#include <csignal>

#include "api/os/process.hpp"

namespace vfmgr::guest {

Result<void> run_program(std::vector<std::string> const& arguments, Deadline deadline) {
    auto const& program = arguments.front();
    auto const child = spawn({.arguments = arguments});
    if (!child)
        return fail(Problem::unsupported,
                    fmt::format("{} can't be run: {}", program, errno_name(child.error())),
                    fmt::format("install {}", program));
    auto const end = end_by(*child, deadline);
    if (!end)
        return fail(Problem::timed_out, program + " did not end in time and was killed",
                    "check the kernel log: dmesg | tail");
    if (end->well()) return {};
    return fail(
        Problem::unsupported, fmt::format("{} ended with {}", program, end->how),
        fmt::format("run it by hand and read what it prints: {}", fmt::join(arguments, " ")));
}

}  // namespace vfmgr::guest
