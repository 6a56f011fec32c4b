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
#include "service/guest/guest_vm.hpp"

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
    [[nodiscard]] Result<void> push(GuestNumber guest, Job job) {
        auto& vm = vms_[guest];
        if (vm.waiting.size() >= limits_.waiting_each_max)
            return fail(Problem::unavailable, "this VM has too many requests waiting",
                        "wait for an answer before the next request");
        vm.waiting.push_back(std::move(job));
        return {};
    }
    // Takes the next request. The caller calls done() with its CID afterwards.
    [[nodiscard]] std::optional<std::pair<GuestNumber, Job>> take() {
        auto at = vms_.upper_bound(last_);
        for (std::size_t observed = 0; observed < vms_.size(); ++observed, ++at) {
            if (at == vms_.end()) at = vms_.begin();
            auto& [guest, vm] = *at;
            if (vm.waiting.empty() || vm.at_work >= limits_.at_work_each_max) continue;
            last_ = guest;
            ++vm.at_work;
            std::pair<GuestNumber, Job> next{guest, std::move(vm.waiting.front())};
            vm.waiting.pop_front();
            return next;
        }
        return std::nullopt;
    }
    void done(GuestNumber guest) {
        --vms_.at(guest).at_work;
        forget_idle(guest);
    }
    // Drops the requests of a VM that has stopped.
    void drop(GuestNumber guest) {
        auto const found = vms_.find(guest);
        if (found == vms_.end()) return;
        found->second.waiting.clear();
        forget_idle(guest);
    }
    [[nodiscard]] std::size_t tracked() const { return vms_.size(); }
    [[nodiscard]] std::size_t waiting() const {
        std::size_t all = 0;
        for (auto const& [guest, vm] : vms_) all += vm.waiting.size();
        return all;
    }

  private:
    struct Vm {
        std::deque<Job> waiting;
        std::size_t at_work = 0;
    };
    void forget_idle(GuestNumber guest) {
        auto const found = vms_.find(guest);
        if (found->second.waiting.empty() && found->second.at_work == 0) vms_.erase(found);
    }

    VmQueueLimits limits_;
    std::map<GuestNumber, Vm> vms_;
    GuestNumber last_ = 0;  // served last
};

}  // namespace vfmgr
