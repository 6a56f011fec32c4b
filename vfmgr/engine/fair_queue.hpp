// SPDX-License-Identifier: Apache-2.0
// Queues tasks of many clients: each client has a bounded queue of its own, and the queues are
// served round robin. A value; not synchronised.
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
    std::size_t each = 32;  // tasks of one client
    std::size_t all = 512;  // tasks of all; beyond it, a client without any may still add one
    std::size_t turn = 8;   // tasks taken at once, from as many clients
};

template <class Task>
class FairQueue {
  public:
    explicit FairQueue(FairQueueLimits limits = {}) : limits_(limits) {}

    [[nodiscard]] bool empty() const { return waiting_.empty(); }

    // False when the client's queue is full.
    [[nodiscard]] bool offer(std::string const& client, Task task) {
        auto const found = waiting_.find(client);
        auto const waiting = found == waiting_.end() ? 0 : found->second.size();
        if (waiting >= (count_ < limits_.all ? limits_.each : 1)) return false;
        if (waiting == 0) turns_.push_back(client);
        waiting_[client].push_back(std::move(task));
        ++count_;
        return true;
    }

    // Takes the oldest task of each of the next clients.
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
    std::deque<std::string> turns_;  // clients with tasks, the next first
    std::size_t count_ = 0;
};

}  // namespace vfmgr
