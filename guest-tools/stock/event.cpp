// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stock/event.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace vfmgr::stock {

Result<FileDescriptor> make_event() {
    FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (event) return event;
    Error error{Problem::limit_exceeded, "no event descriptor", "raise LimitNOFILE"};
    error.causes.push_back(errno_cause("eventfd", errno));
    return fail(std::move(error));
}

void raise(FileDescriptor const& event) {
    std::uint64_t const one = 1;
    // Fails only when it is raised already.
    [[maybe_unused]] auto const written = ::write(event.get(), &one, sizeof one);
}

void take_event(FileDescriptor const& event) {
    std::uint64_t count = 0;
    // Fails only when it was not raised.
    [[maybe_unused]] auto const read = ::read(event.get(), &count, sizeof count);
}

bool wait_readable(std::span<pollfd> watched, Deadline deadline) {
    using Steady = std::chrono::steady_clock;
    while (true) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
        if (left.count() <= 0) return false;
        // An hour is more than any of them has.
        auto const milliseconds = std::min<long>(left.count(), 3'600'000);
        if (::poll(watched.data(), watched.size(), static_cast<int>(milliseconds)) > 0) return true;
    }
}

}  // namespace vfmgr::stock
