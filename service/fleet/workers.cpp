// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace vfmgr::fleet {
namespace {

Error too_busy(std::string detail) {
    return {Problem::unavailable, std::move(detail), "repeat it after the time in Retry-After"};
}

}  // namespace

struct Workers::Impl {
    struct Share {
        std::deque<Work> waiting;
        std::size_t running = 0;
    };
    using Shares = std::map<std::string, Share>;

    WorkerLimits limits;
    std::function<void(std::string const&)> on_bug;
    std::stop_source stopping;
    mutable std::mutex mutex;           // guards the members below
    std::condition_variable may_go_on;  // there is work, something has ended, or a stop
    Shares shares;                      // by principal; none without work
    std::string last_turn;              // whose it was
    Load load;
    std::vector<std::thread> threads{};

    [[nodiscard]] std::size_t running_each_max() const {
        return std::max<std::size_t>(1, limits.threads / 2);
    }
    [[nodiscard]] bool may_run(Share const& share) const {
        return !share.waiting.empty() && share.running < running_each_max();
    }
    // The next principal after the last one that has its turn. end(): nobody may run anything.
    Shares::iterator next_turn() {
        auto it = shares.upper_bound(last_turn);
        for (std::size_t i = 0; i < shares.size(); ++i, ++it) {
            if (it == shares.end()) it = shares.begin();
            if (may_run(it->second)) return it;
        }
        return shares.end();
    }
    void run() {
        std::unique_lock lock(mutex);
        for (;;) {
            auto turn = shares.end();
            may_go_on.wait(lock, [&] {
                turn = next_turn();
                return stopping.stop_requested() || turn != shares.end();
            });
            if (stopping.stop_requested()) return;
            last_turn = turn->first;
            auto& [waiting, running] = turn->second;  // stays: shares with work are kept
            auto work = std::move(waiting.front());
            waiting.pop_front();
            ++running;
            --load.waiting;
            ++load.running;
            lock.unlock();
            perform(std::move(work));
            lock.lock();
            --load.running;
            --running;
            if (running == 0 && waiting.empty()) shares.erase(turn);
            may_go_on.notify_all();
        }
    }

    void perform(Work work) const {
        try {
            work(stopping.get_token());
        } catch (std::exception const& bug) {
            if (on_bug) on_bug(bug.what());
        }
    }
};

Workers::Workers(WorkerLimits limits, std::function<void(std::string const& bug)> on_bug)
    : impl_(std::make_shared<Impl>()) {
    impl_->limits = limits;
    impl_->on_bug = std::move(on_bug);
    for (std::size_t i = 0; i < limits.threads; ++i)
        impl_->threads.emplace_back([impl = impl_.get()] { impl->run(); });
}

Workers::~Workers() {
    static_cast<void>(stop({}));
    for (auto& thread : impl_->threads) thread.join();
}

Result<void> Workers::submit(std::string const& who, Work work) {
    std::lock_guard const lock(impl_->mutex);
    if (impl_->stopping.stop_requested()) return fail(too_busy("this replica stops"));
    auto const found = impl_->shares.find(who);
    auto const own =
        found == impl_->shares.end() ? 0 : found->second.waiting.size() + found->second.running;
    bool const all = impl_->load.waiting >= impl_->limits.waiting_max;
    if (all || own >= impl_->limits.waiting_each_max) {
        ++impl_->load.refused;
        return fail(
            too_busy(all ? fmt::format("{} requests are waiting already", impl_->load.waiting)
                         : fmt::format("{} requests from {} are waiting already", own, who)));
    }
    impl_->shares[who].waiting.push_back(std::move(work));
    ++impl_->load.waiting;
    impl_->may_go_on.notify_one();
    return {};
}

bool Workers::stop(Deadline patience) {
    std::map<std::string, std::deque<Work>> dropped;  // destroyed without the lock
    std::unique_lock lock(impl_->mutex);
    impl_->stopping.request_stop();
    for (auto& [who, share] : impl_->shares) dropped[who].swap(share.waiting);
    impl_->load.waiting = 0;
    impl_->may_go_on.notify_all();
    bool const ended =
        impl_->may_go_on.wait_until(lock, patience, [&] { return impl_->load.running == 0; });
    lock.unlock();
    return ended;
}

Workers::Load Workers::load() const {
    std::lock_guard const lock(impl_->mutex);
    return impl_->load;
}

}  // namespace vfmgr::fleet
