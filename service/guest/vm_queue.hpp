// SPDX-License-Identifier: Apache-2.0
// Queues the requests of many VMs. Each VM has its own bounded queue, and the queues are served
// round robin, so that a busy VM waits behind its own requests. Not synchronised: the owner's lock
// guards it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "api/types/problem.hpp"

namespace vfmgr {

struct VmQueueLimits {
    std::size_t waiting_each_max = 8;
    std::size_t at_work_each_max = 2;  // so that no VM occupies all threads
};

template <class Job>
class VmQueue {
  public:
    explicit VmQueue(VmQueueLimits limits) : limits_(limits) {}

    // Fails with unavailable if the VM's queue is full.
    [[nodiscard]] Result<void> push(std::uint32_t cid, Job job) {
        auto& vm = vms_[cid];
        if (vm.waiting.size() >= limits_.waiting_each_max)
            return fail(Problem::unavailable, "this VM has too many requests waiting",
                        "wait for an answer before the next request");
        vm.waiting.push_back(std::move(job));
        return {};
    }
    // Takes the next request. The caller calls done() with its CID afterwards.
    [[nodiscard]] std::optional<std::pair<std::uint32_t, Job>> take() {
        auto at = vms_.upper_bound(last_);
        for (std::size_t observed = 0; observed < vms_.size(); ++observed, ++at) {
            if (at == vms_.end()) at = vms_.begin();
            auto& [cid, vm] = *at;
            if (vm.waiting.empty() || vm.at_work >= limits_.at_work_each_max) continue;
            last_ = cid;
            ++vm.at_work;
            std::pair<std::uint32_t, Job> next{cid, std::move(vm.waiting.front())};
            vm.waiting.pop_front();
            return next;
        }
        return std::nullopt;
    }
    void done(std::uint32_t cid) {
        --vms_.at(cid).at_work;
        forget_idle(cid);
    }
    // Drops the requests of a VM that has stopped.
    void drop(std::uint32_t cid) {
        auto const found = vms_.find(cid);
        if (found == vms_.end()) return;
        found->second.waiting.clear();
        forget_idle(cid);
    }
    [[nodiscard]] std::size_t tracked() const { return vms_.size(); }
    [[nodiscard]] std::size_t waiting() const {
        std::size_t all = 0;
        for (auto const& [cid, vm] : vms_) all += vm.waiting.size();
        return all;
    }

  private:
    struct Vm {
        std::deque<Job> waiting;
        std::size_t at_work = 0;
    };
    void forget_idle(std::uint32_t cid) {
        auto const found = vms_.find(cid);
        if (found->second.waiting.empty() && found->second.at_work == 0) vms_.erase(found);
    }

    VmQueueLimits limits_;
    std::map<std::uint32_t, Vm> vms_;  // by CID
    std::uint32_t last_ = 0;           // the CID served last
};

}  // namespace vfmgr
