// SPDX-License-Identifier: Apache-2.0
// What many clients wait for, in turn: one bounded queue for each of them. A value; not
// synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace vfmgr {

struct FairQueueLimits {
    std::size_t each = 32;  // waiting, of one client
    std::size_t all = 512;  // of all; a client that has none waiting still gets one in
    std::size_t turn = 8;   // clients served at once, one of each
};

template <class Task>
class FairQueue {
  public:
    explicit FairQueue(FairQueueLimits limits = {}) : limits_(limits) {}

    [[nodiscard]] bool empty() const { return waiting_.empty(); }

    // False: the queue of this client is full.
    [[nodiscard]] bool offer(std::string const& client, Task task) {
        auto const found = waiting_.find(client);
        auto const waiting = found == waiting_.end() ? 0 : found->second.size();
        if (waiting >= (count_ < limits_.all ? limits_.each : 1)) return false;
        if (waiting == 0) turns_.push_back(client);
        waiting_[client].push_back(std::move(task));
        ++count_;
        return true;
    }

    // The oldest of each client whose turn it is.
    [[nodiscard]] std::vector<Task> take() {
        std::vector<Task> taken;
        for (auto clients = std::min(limits_.turn, turns_.size()); clients > 0; --clients) {
            auto client = std::move(turns_.front());
            turns_.pop_front();
            auto const queue = waiting_.find(client);
            taken.push_back(std::move(queue->second.front()));
            queue->second.pop_front();
            --count_;
            if (queue->second.empty())
                waiting_.erase(queue);
            else
                turns_.push_back(std::move(client));
        }
        return taken;
    }

  private:
    FairQueueLimits limits_;
    std::map<std::string, std::deque<Task>> waiting_;
    std::deque<std::string> turns_;  // who has something waiting
    std::size_t count_ = 0;
};

}  // namespace vfmgr
