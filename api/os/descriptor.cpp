// SPDX-License-Identifier: Apache-2.0
// Open file descriptors, waiting for them, and a reserve of them. Any thread.
#include "api/os/descriptor.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

namespace vfmgr {

Result<FileDescriptor> make_event() {
    FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (event) return event;
    return fail({Problem::limit_exceeded,
                 "can't create an event descriptor",
                 "raise the limit of open files (LimitNOFILE of the unit)",
                 {errno_cause("eventfd", errno)}});
}

void raise_event(FileDescriptor const& event) {
    std::uint64_t const one = 1;
    // Fails only if it is already raised.
    [[maybe_unused]] auto const written = ::write(event.get(), &one, sizeof one);
}

void take_event(FileDescriptor const& event) {
    std::uint64_t count = 0;
    // Fails only if it is not raised.
    [[maybe_unused]] auto const read = ::read(event.get(), &count, sizeof count);
}

Result<Readiness> await_readable(std::span<int const> fds, Deadline deadline) {
    using std::chrono::nanoseconds;
    std::vector<pollfd> polled;
    for (auto const fd : fds) polled.push_back({fd, POLLIN, 0});
    while (true) {
        auto const left = std::max(
            nanoseconds{0},
            std::chrono::duration_cast<nanoseconds>(deadline - std::chrono::steady_clock::now()));
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        timespec const timeout{static_cast<time_t>(seconds.count()),
                               static_cast<long>((left - seconds).count())};
        auto const ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
        if (ready > 0) return Readiness::readable;
        if (ready == 0) return Readiness::deadline_passed;
        if (errno != EINTR)
            return fail({Problem::kernel_refused,
                         "waiting for the kernel failed: " + std::generic_category().message(errno),
                         "see the kernel's log for the reason: journalctl -k",
                         {errno_cause("ppoll", errno)}});
    }
}

bool is_readable(int fd) {
    pollfd ready{fd, POLLIN, 0};
    return fd >= 0 && ::poll(&ready, 1, 0) > 0;
}

}  // namespace vfmgr
