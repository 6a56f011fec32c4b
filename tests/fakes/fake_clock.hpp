// SPDX-License-Identifier: Apache-2.0
// A Clock that stands still until a test moves it. Any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "api/types/time.hpp"

namespace vfmgr {

class FakeClock final : public Clock {
  public:
    // Starts at 2026-01-31T12:00:00Z, and as far from the steady clock's epoch.
    FakeClock() = default;
    [[nodiscard]] Time now() const override { return Time(milliseconds_.load()); }
    [[nodiscard]] Deadline steady_now() const override { return Deadline(milliseconds_.load()); }
    void advance(std::chrono::milliseconds by) { milliseconds_ = milliseconds_.load() + by; }

  private:
    std::atomic<std::chrono::milliseconds> milliseconds_{
        std::chrono::milliseconds(1'769'860'800'000)};
};

}  // namespace vfmgr
