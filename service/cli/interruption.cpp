// SPDX-License-Identifier: Apache-2.0
#include "service/cli/interruption.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/types/exit.hpp"

namespace vfmgr {
namespace {

sigset_t interrupt_only() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
}

}  // namespace

Interruption::Interruption(std::string farewell) : farewell_(std::move(farewell)) {
    auto const set = interrupt_only();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signals_ = FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC));
    over_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { watch(); });
}

Interruption::~Interruption() {
    std::uint64_t const one = 1;
    (void)!::write(over_.get(), &one, sizeof one);
    thread_.join();
    auto const set = interrupt_only();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interruption::set_farewell(std::string farewell) {
    std::lock_guard const lock(mutex_);
    farewell_ = std::move(farewell);
}

void Interruption::watch() {
    pollfd waiting[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = over_.get(), .events = POLLIN, .revents = 0}};
    while (::poll(waiting, 2, -1) < 0) continue;
    if ((waiting[0].revents & POLLIN) == 0) return;
    std::lock_guard const lock(mutex_);
    (void)!::write(STDERR_FILENO, farewell_.data(), farewell_.size());
    ::_exit(static_cast<int>(Exit::interrupted));
}

}  // namespace vfmgr
