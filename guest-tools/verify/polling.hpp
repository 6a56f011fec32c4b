// SPDX-License-Identifier: Apache-2.0
// Polls memory that a NIC writes, for which no event is raised, or a completion queue before
// blocking on it. One thread.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "api/types/time.hpp"

namespace vfmgr::verify {

// Loads the byte anew on each call, ordered before all later loads.
[[nodiscard]] inline std::uint8_t read_byte(std::byte const& byte) {
    return __atomic_load_n(reinterpret_cast<std::uint8_t const*>(&byte), __ATOMIC_ACQUIRE);
}

// After some 50 us it yields the CPU between two polls: SoftRoCE's work may need this very CPU
// (RDMA.md#polling). It counts polls, because reading a clock may cost more than a poll: in a VM
// whose clock is an emulated HPET, each reading stops the VM.
class Spin {
  public:
    // Call after a poll that found nothing. Returns false when the deadline has passed.
    [[nodiscard]] bool again(Deadline deadline) {
        if (++polls_ > busy_polls) ::sched_yield();
        return polls_ % polls_by_clock != 0 || std::chrono::steady_clock::now() < deadline;
    }
    void found() { polls_ = 0; }

  private:
    static constexpr unsigned busy_polls = 1024;
    static constexpr unsigned polls_by_clock = 256;
    unsigned polls_ = 0;
};

}  // namespace vfmgr::verify
