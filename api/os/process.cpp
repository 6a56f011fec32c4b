// SPDX-License-Identifier: Apache-2.0
#include "api/os/process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"

namespace vfmgr {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

struct FileActions {
    posix_spawn_file_actions_t actions{};
    FileActions() { posix_spawn_file_actions_init(&actions); }
    ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
    FileActions(FileActions const&) = delete;
    FileActions& operator=(FileActions const&) = delete;
};

struct Attributes {
    posix_spawnattr_t attributes{};
    Attributes() {
        posix_spawnattr_init(&attributes);
        sigset_t none;
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    }
    ~Attributes() { posix_spawnattr_destroy(&attributes); }
    Attributes(Attributes const&) = delete;
    Attributes& operator=(Attributes const&) = delete;
};

}  // namespace

tl::expected<pid_t, int> spawn(ProcessOptions options) {
    FileActions files;
    for (auto const& [ours, theirs] : options.descriptors)
        posix_spawn_file_actions_adddup2(&files.actions, ours, theirs);
    if (options.close_from)
        posix_spawn_file_actions_addclosefrom_np(&files.actions, *options.close_from);
    Attributes const attributes;
    auto const arguments = pointers(options.arguments);
    std::vector<char*> variables;
    if (options.environment) variables = pointers(*options.environment);
    auto* const* const environment = options.environment ? variables.data() : environ;
    pid_t pid = 0;
    int const error = options.program.empty()
                          ? ::posix_spawnp(&pid, arguments.front(), &files.actions,
                                           &attributes.attributes, arguments.data(), environment)
                          : ::posix_spawn(&pid, options.program.c_str(), &files.actions,
                                          &attributes.attributes, arguments.data(), environment);
    if (error != 0) return tl::unexpected(error);
    return pid;
}

bool await_end_of(pid_t pid, Deadline deadline) {
    FileDescriptor const process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return errno == ESRCH;
    auto const ready = await_readable(std::array{process.get()}, deadline);
    return ready && *ready == Readiness::readable;
}

ProcessEnd reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return {-1, "an unknown status"};
    if (WIFSIGNALED(status))
        return {128 + WTERMSIG(status), fmt::format("signal {}", WTERMSIG(status))};
    return {WEXITSTATUS(status), fmt::format("exit status {}", WEXITSTATUS(status))};
}

std::optional<ProcessEnd> end_by(pid_t pid, Deadline deadline) {
    bool const ended = await_end_of(pid, deadline);
    if (!ended) ::kill(pid, SIGKILL);
    auto end = reap(pid);
    return ended ? std::optional(std::move(end)) : std::nullopt;
}

tl::expected<std::pair<FileDescriptor, FileDescriptor>, int> socket_pair(int type) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return tl::unexpected(errno);
    return std::pair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace vfmgr
