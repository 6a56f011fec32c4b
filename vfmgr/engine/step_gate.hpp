// SPDX-License-Identifier: Apache-2.0
// Makes a stop fall between two kernel steps, never inside one. Owned by the engine; any thread.
#pragma once

#include <condition_variable>
#include <mutex>

namespace vfmgr {

class StepGate {
  public:
    // Held during a step. Its constructor waits while the gate is shut.
    class Passage {
      public:
        explicit Passage(StepGate& gate);
        ~Passage();
        Passage(Passage const&) = delete;
        Passage& operator=(Passage const&) = delete;

      private:
        StepGate& gate_;
    };

    void shut();  // returns when no step is running
    void open();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t underway_ = 0;
    bool shut_ = false;
};

}  // namespace vfmgr
