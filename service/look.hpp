// SPDX-License-Identifier: Apache-2.0
// Looks at this host when somebody asks, on a thread of its own: that takes a while, and the io
// thread does not wait. One look serves all who asked before it began. Owned by run(); any thread
// may ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace vfmgr {

template <class Seen>
class Look {
  public:
    using Shared = std::shared_ptr<Seen const>;

    explicit Look(std::function<Seen()> look)
        : look_(std::move(look)), looker_([this] { serve(); }) {}
    ~Look() {  // waits for the look under way; who asked after it is not told
        {
            std::lock_guard const lock(mutex_);
            stopping_ = true;
        }
        asked_.notify_one();
        looker_.join();
    }
    Look(Look const&) = delete;
    Look& operator=(Look const&) = delete;

    // `tell` is called once, on the thread that looks.
    void ask(std::function<void(Shared)> tell) {
        {
            std::lock_guard const lock(mutex_);
            askers_.push_back(std::move(tell));
        }
        asked_.notify_one();
    }

  private:
    void serve() {
        for (;;) {
            std::vector<std::function<void(Shared)>> askers;
            {
                std::unique_lock lock(mutex_);
                asked_.wait(lock, [this] { return stopping_ || !askers_.empty(); });
                if (stopping_) return;
                askers = std::exchange(askers_, {});
            }
            auto const seen = std::make_shared<Seen const>(look_());
            for (auto const& tell : askers) tell(seen);
        }
    }

    std::function<Seen()> const look_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable asked_;
    std::vector<std::function<void(Shared)>> askers_;
    bool stopping_ = false;
    std::thread looker_;
};

}  // namespace vfmgr
