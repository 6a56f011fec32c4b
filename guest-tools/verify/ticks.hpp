// SPDX-License-Identifier: Apache-2.0
// The CPU's own counter, to time rounds of some microseconds. Reading a clock may cost more than a
// round: in a VM whose clock is an emulated HPET each reading leaves the VM. perftest also reads
// the counter, and asks the CPU for its rate; here clock and counter are compared while it counts.
// Pure except the reading; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace vfmgr::verify {

[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t count = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;  // no rate can be found, so the clock is used
#endif
}

// Counter and clock at nearly the same moment.
struct Mark {
    std::uint64_t ticks = 0;
    std::uint64_t nanoseconds = 0;
};

// Nanoseconds per tick, if the first and second half of the time agree within 2 %. Nothing if they
// don't, or with fewer than three marks: the counter is no clock here.
[[nodiscard]] std::optional<double> tick_nanoseconds(std::span<Mark const> marks);

}  // namespace vfmgr::verify
