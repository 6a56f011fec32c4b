// SPDX-License-Identifier: Apache-2.0
// Looking at something again and again: memory that a NIC writes, for which nobody raises an event,
// or a completion queue before blocking on it. One thread.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "api/types/time.hpp"

namespace vfmgr::verify {

// Read anew each time, and before whatever is read afterwards.
[[nodiscard]] inline std::uint8_t read_byte(std::byte const& byte) {
    return __atomic_load_n(reinterpret_cast<std::uint8_t const*>(&byte), __ATOMIC_ACQUIRE);
}

// After some 50 us the CPU is given away between two looks: SoftRoCE's work may need this very one
// (verification.md, 3.6). Looks are counted, because a clock may cost more than a look: in a VM
// whose clock is an emulated HPET, each reading stops it.
class Spin {
  public:
    // After a look that found nothing; false when the deadline has passed.
    [[nodiscard]] bool again(Deadline deadline) {
        if (++looks_ > busy_looks) ::sched_yield();
        return looks_ % looks_by_the_clock != 0 || std::chrono::steady_clock::now() < deadline;
    }
    void found() { looks_ = 0; }

  private:
    static constexpr unsigned busy_looks = 1024;
    static constexpr unsigned looks_by_the_clock = 256;
    unsigned looks_ = 0;
};

}  // namespace vfmgr::verify
