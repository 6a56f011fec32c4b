// SPDX-License-Identifier: Apache-2.0
#include "service/socket_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <array>
#include <csignal>
#include <cstdio>

namespace vfmgr {
namespace {

sigset_t ending_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return signals;
}

}  // namespace

void block_ending_signals() {
    auto const signals = ending_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void accept_until_signal(int listener, std::function<void(FileDescriptor)> const& accept) {
    auto const signals = ending_signals();
    FileDescriptor const ending(::signalfd(-1, &signals, SFD_CLOEXEC));
    ::sd_notify(0, "READY=1");
    std::array<pollfd, 2> waiting{{{listener, POLLIN, 0}, {ending.get(), POLLIN, 0}}};
    while ((waiting[1].revents & POLLIN) == 0) {
        if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
        if ((waiting[0].revents & POLLIN) == 0) continue;
        FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (socket) accept(std::move(socket));
    }
    ::sd_notify(0, "STOPPING=1");
}

int failed_to_start(Error const& error) {
    fmt::print(stderr, SD_ERR "{}; remedy: {}\n", error.detail, error.remedy);
    for (auto const& violation : error.violations)
        fmt::print(stderr, SD_ERR "{}: {}\n", violation.pointer, violation.detail);
    return 1;
}

}  // namespace vfmgr
