// SPDX-License-Identifier: Apache-2.0
// Lets a daemon that stops end between two steps of the kernel, not in one. Owned by the engine;
// any thread.
#pragma once

#include <condition_variable>
#include <mutex>

namespace vfmgr {

class StepGate {
  public:
    // A step; while the gate is shut, it does not begin.
    class Passage {
      public:
        explicit Passage(StepGate& gate);
        ~Passage();
        Passage(Passage const&) = delete;
        Passage& operator=(Passage const&) = delete;

      private:
        StepGate& gate_;
    };

    void shut();  // returns when no step is under way any more
    void open();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t underway_ = 0;
    bool shut_ = false;
};

}  // namespace vfmgr
