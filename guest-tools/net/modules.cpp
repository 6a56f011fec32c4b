// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/modules.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "api/types/file_descriptor.hpp"

namespace vfmgr::guest {
namespace {

Error missing(std::string const& module, std::string why) {
    utsname names{};
    std::string const kernel = ::uname(&names) == 0 ? names.release : "this kernel";
    return {Problem::unsupported,
            fmt::format("the kernel module {} is not loaded: {}", module, std::move(why)),
            fmt::format("install {} for kernel {} (Debian: linux-image-amd64, not -cloud) and run "
                        "modprobe {}",
                        module, kernel, module)};
}

// The child's status, or an Error at the deadline, when it is killed.
Result<int> await_child(pid_t child, Deadline deadline) {
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
        return fail(Problem::timed_out, "modprobe did not end in time", "see the kernel log");
    return status;
}

}  // namespace

Result<void> need_module(std::string const& sysfs, std::string const& module, Deadline deadline) {
    if (std::error_code ignored; std::filesystem::exists(sysfs + "/module/" + module, ignored))
        return {};
    std::string program = "modprobe";
    std::string name = module;
    std::array<char*, 3> arguments{program.data(), name.data(), nullptr};
    pid_t child = 0;
    int const error =
        ::posix_spawnp(&child, "modprobe", nullptr, nullptr, arguments.data(), environ);
    if (error != 0) return fail(missing(module, "modprobe can't be run: " + errno_name(error)));
    VFMGR_TRY(int const status, await_child(child, deadline));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return fail(missing(module, fmt::format("modprobe ended with status {}", WEXITSTATUS(status))));
}

}  // namespace vfmgr::guest
