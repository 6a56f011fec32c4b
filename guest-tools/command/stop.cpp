// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/stop.hpp"

#include <sys/signalfd.h>

#include <csignal>

namespace vfmgr::guest::command {

Result<FileDescriptor> stop_signals() {
    sigset_t signals{};
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    FileDescriptor made(::signalfd(-1, &signals, SFD_CLOEXEC));
    if (made) return made;
    return fail(Problem::limit_exceeded, "the descriptor for signals can't be created",
                "raise the limit of open files");
}

}  // namespace vfmgr::guest::command
