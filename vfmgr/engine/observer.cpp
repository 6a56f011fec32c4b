// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/observer.hpp"

#include <algorithm>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

// An observation of a thousand VFs takes seconds where CPUs are slow or busy.
constexpr auto rest_max = 15s;
// Refusals of one client that wait for a fresh observation; further ones are answered without it.
constexpr std::ptrdiff_t awaiting_each_max = 16;

}  // namespace

void Observer::observed_already() {
    std::lock_guard const lock(mutex_);
    observed_already_ = true;
}

void Observer::start() {
    {
        std::lock_guard const lock(mutex_);
        running_ = true;
    }
    thread_ = std::thread([this] { run(); });
}

void Observer::stop() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = now_ = true;
    }
    wake_.notify_all();
}

void Observer::join() {
    if (thread_.joinable()) thread_.join();
}

void Observer::observe_again() {
    {
        std::lock_guard const lock(mutex_);
        now_ = true;
    }
    wake_.notify_all();
}

void Observer::observe_at_once() {
    {
        std::lock_guard const lock(mutex_);
        now_ = at_once_ = true;
    }
    wake_.notify_all();
}

bool Observer::after_observing(std::string const& client,
                               std::function<void(Control::State&)> task) {
    {
        std::lock_guard const lock(mutex_);
        if (!running_) return false;
        if (std::ranges::count(awaiting_, client, &Awaiting::client) >= awaiting_each_max)
            return false;
        awaiting_.push_back({client, std::move(task)});
    }
    wake_.notify_all();
    return true;
}

void Observer::run() {
    std::unique_lock lock(mutex_);
    while (running_) {
        running_ = !stopping_;
        auto const awaiting = std::exchange(awaiting_, {});
        bool const is_observed = std::exchange(observed_already_, false) && !now_ &&
                                 awaiting.empty() && operations_.claims().taken_meanwhile().empty();
        now_ = at_once_ = false;
        lock.unlock();
        auto const began = seams().clock.steady_now();
        auto const observe = [&] {
            if (!is_observed) {
                operations_.claims().observation_begins();
                // An unreadable host stays published as it was; operations observe for themselves.
                static_cast<void>(observe_for(seams(), std::nullopt).has_value());
            }
            judge_();
        };
        if (auto const bug = exception_of(observe))
            seams().control.report_bug("an exception ended an observation of the host: " + *bug);
        for (auto const& one : awaiting) seams().control.post(one.task);
        auto const took = seams().clock.steady_now() - began;
        lock.lock();
        auto const asked = [this] { return !awaiting_.empty() || stopping_; };
        wake_.wait_for(lock, 5s, [&] { return now_ || asked(); });
        // Whatever happens on the host, observing it takes a tenth of a CPU at most, and half of
        // one while VMs change. Only tasks that wait for an observation, and a stop, skip the
        // pause.
        wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(took, rest_max), asked);
        wake_.wait_for(lock, std::min<std::chrono::nanoseconds>(8 * took, rest_max),
                       [&] { return at_once_ || asked(); });
    }
}

}  // namespace vfmgr
