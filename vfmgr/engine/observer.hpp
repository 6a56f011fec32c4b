// SPDX-License-Identifier: Apache-2.0
// Observes the host again and again: when something reports a change, when a task waits for it, and
// every few seconds. Owned by the engine; any thread may call.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "vfmgr/engine/operations.hpp"

namespace vfmgr {

class Observer : public EnginePart {
  public:
    // `judge` is called after each observation, on the observer's thread.
    Observer(Operations& operations, std::function<void()> judge)
        : EnginePart(operations), judge_(std::move(judge)) {}

    // What was observed so far is judged first, if no change was reported since.
    void observed_already();
    void start();
    void stop();  // ends it after a last observation, for tasks that already wait
    void join();
    void observe_again();
    // Waits only as long as the last observation took (at most 15 s), not nine times as long (at
    // most 30 s): for changes of VMs, which are rare and matter.
    void observe_at_once();
    // Posts the task after the next observation. False: no observer runs (any more), or too many of
    // this client's tasks are waiting.
    [[nodiscard]] bool after_observing(std::string const& client,
                                       std::function<void(Control::State&)> task);

  private:
    void run();

    struct Awaiting {
        std::string client;
        std::function<void(Control::State&)> task;
    };
    std::function<void()> const judge_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool running_ = false;            // mutex_
    bool stopping_ = false;           // mutex_
    bool observed_already_ = false;   // mutex_
    bool now_ = false;                // mutex_
    bool at_once_ = false;            // mutex_
    std::vector<Awaiting> awaiting_;  // mutex_
    std::thread thread_;
};

}  // namespace vfmgr
