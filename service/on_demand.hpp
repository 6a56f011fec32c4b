// SPDX-License-Identifier: Apache-2.0
// Observes this host on request, on its own thread: an observation takes a while, and the io thread
// must not wait. One observation serves all callers that asked before it began. Owned by run(); any
// thread may ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "vfmgr/engine/query.hpp"

namespace vfmgr {

template <class Observed>
class OnDemand {
  public:
    using Shared = std::shared_ptr<Observed const>;

    explicit OnDemand(std::function<Observed()> observe)
        : observe_(std::move(observe)), thread_([this] { serve(); }) {}
    ~OnDemand() {  // waits for the observation in progress; later callers get no answer
        {
            std::lock_guard const lock(mutex_);
            stopping_ = true;
        }
        asked_.notify_one();
        thread_.join();
    }
    OnDemand(OnDemand const&) = delete;
    OnDemand& operator=(OnDemand const&) = delete;

    // Answered on the observing thread.
    [[nodiscard]] Query<Shared> query() {
        return Query<Shared>([this](Client const&, typename Query<Shared>::Answer answer) {
            {
                std::lock_guard const lock(mutex_);
                askers_.push_back(std::move(answer));
            }
            asked_.notify_one();
        });
    }

  private:
    void serve() {
        for (;;) {
            std::vector<typename Query<Shared>::Answer> askers;
            {
                std::unique_lock lock(mutex_);
                asked_.wait(lock, [this] { return stopping_ || !askers_.empty(); });
                if (stopping_) return;
                askers = std::exchange(askers_, {});
            }
            auto const observed = std::make_shared<Observed const>(observe_());
            for (auto const& answer : askers) answer(observed);
        }
    }

    std::function<Observed()> const observe_;
    std::mutex mutex_;  // guards the members below
    std::condition_variable asked_;
    std::vector<typename Query<Shared>::Answer> askers_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace vfmgr
