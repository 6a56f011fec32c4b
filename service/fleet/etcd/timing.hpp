// SPDX-License-Identifier: Apache-2.0
// How the threads of the fleet wait: until a time, until something happens, until they are to stop.
// Each owner has its own; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "api/os/random.hpp"
#include "api/types/time.hpp"

namespace vfmgr::fleet {

class Stop {
  public:
    void request() {
        {
            std::lock_guard const lock(mutex_);
            requested_ = true;
        }
        wake_.notify_all();
    }
    [[nodiscard]] bool requested() const {
        std::lock_guard const lock(mutex_);
        return requested_;
    }
    // Waits until then. False, and at once, when it is to stop.
    bool wait_until(Deadline then) {
        std::unique_lock lock(mutex_);
        return !wake_.wait_until(lock, then, [this] { return requested_; });
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    bool requested_ = false;  // guarded by mutex_
};

// The time and a way to wait for it, for what runs on its caller's thread. Tests pass a clock that
// they move, and move it instead of waiting.
struct Timing {
    Clock const& clock;
    std::function<bool(Deadline)> wait_until;  // as Stop's
};

// How long to wait after a failure, and after the next. Half of it is chance, so that replicas that
// failed at the same time don't come back at the same time.
class Backoff {
  public:
    constexpr Backoff(std::chrono::milliseconds first, std::chrono::milliseconds most)
        : first_(first), most_(most), next_(first) {}
    [[nodiscard]] std::chrono::milliseconds next() {
        auto const half = std::max<std::int64_t>(1, next_.count() / 2);
        next_ = std::min(most_, next_ * 2);
        auto const chance = random_number() % static_cast<std::uint64_t>(half);
        return std::chrono::milliseconds(half + static_cast<std::int64_t>(chance));
    }
    void reset() { next_ = first_; }

  private:
    std::chrono::milliseconds first_;
    std::chrono::milliseconds most_;
    std::chrono::milliseconds next_;
};

// A thread that takes one turn after the other. `turn` returns when the next is due; `interrupt`
// ends what a turn waits for.
class OwnThread {
  public:
    OwnThread(std::function<Deadline()> turn, std::function<void()> interrupt)
        : interrupt_(std::move(interrupt)), thread_([this, turn = std::move(turn)] {
              while (!stop_.requested() && stop_.wait_until(turn())) {
              }
          }) {}
    ~OwnThread() {
        stop_.request();
        interrupt_();
        thread_.join();
    }
    OwnThread(OwnThread const&) = delete;
    OwnThread& operator=(OwnThread const&) = delete;

  private:
    Stop stop_;
    std::function<void()> const interrupt_;
    std::thread thread_;
};

}  // namespace vfmgr::fleet
