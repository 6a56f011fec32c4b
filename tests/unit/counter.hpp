// SPDX-License-Identifier: Apache-2.0
// What a test waits for when other threads do it. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace vfmgr::test {

// Waits, with a deadline, for other threads to count.
class Counter {
  public:
    void add() {
        std::lock_guard const lock(mutex_);
        ++count_;
        changed_.notify_all();
    }
    [[nodiscard]] bool reaches(int expected) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20),
                                 [&] { return count_ >= expected; });
    }
    [[nodiscard]] int count() {
        std::lock_guard const lock(mutex_);
        return count_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

}  // namespace vfmgr::test
