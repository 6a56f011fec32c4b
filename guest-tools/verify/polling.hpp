// SPDX-License-Identifier: Apache-2.0
// Waiting for memory that a NIC writes. Nobody raises an event for that, so it is looked at again
// and again; after 50 us the CPU is given away between two looks, as SoftRoCE's work may need this
// very CPU (verification.md, 3.6). One thread.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace vfmgr::verify {

// Read anew each time, and before whatever is read afterwards.
[[nodiscard]] inline std::uint8_t read_byte(std::byte const& byte) {
    return __atomic_load_n(reinterpret_cast<std::uint8_t const*>(&byte), __ATOMIC_ACQUIRE);
}

class Spin {
  public:
    void relax() {
        auto const now = std::chrono::steady_clock::now();
        if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
        if (now - since_ > busy) ::sched_yield();
    }
    void reset() { since_ = {}; }

  private:
    static constexpr std::chrono::microseconds busy{50};
    std::chrono::steady_clock::time_point since_{};
};

}  // namespace vfmgr::verify
