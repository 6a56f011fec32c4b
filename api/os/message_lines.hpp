// SPDX-License-Identifier: Apache-2.0
// Messages of one line each over a stream socket, for both of its ends: the daemon and its workers,
// the front and the broker.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/types/time.hpp"

namespace vfmgr {

// Splits a stream into lines. One thread.
class Lines {
  public:
    // False when the current line is longer than any message: the stream is then unusable.
    [[nodiscard]] bool add(std::string_view bytes);
    [[nodiscard]] std::optional<std::string> next();

  private:
    std::string bytes_;
    std::size_t searched_ = 0;
};

// Reads until the other end has closed, or `take` returns false. Returns whether all was taken.
[[nodiscard]] bool each_line(int socket, std::function<bool(std::string const& line)> const& take);
// Blocks until the other end has room for all of it. False when that end is gone.
bool send_all(int socket, std::string_view bytes);

// The asking end: threads wait for answers, which a receiving thread hands out by the id of their
// request. Answer has `id`. Any thread.
template <class Answer>
class Answers {
  public:
    // Returns the id of a new request. Each one is awaited once.
    [[nodiscard]] std::uint64_t expect() {
        std::lock_guard const lock(mutex_);
        expected_.emplace(++last_id_, std::nullopt);
        return last_id_;
    }
    // Nothing if the deadline passes, or if no answer can come any more.
    [[nodiscard]] std::optional<Answer> await(std::uint64_t id, Deadline deadline) {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, deadline, [&] { return expected_.at(id) || ended_; });
        auto answer = std::move(expected_.at(id));
        expected_.erase(id);
        return answer;
    }
    // Drops an answer that nobody waits for any more.
    void take(Answer answer) {
        std::lock_guard const lock(mutex_);
        auto const place = expected_.find(answer.id);
        if (place == expected_.end()) return;
        place->second = std::move(answer);
        changed_.notify_all();
    }
    // No answer can come any more.
    void end() {
        std::lock_guard const lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] bool ended() const {
        std::lock_guard const lock(mutex_);
        return ended_;
    }
    [[nodiscard]] bool await_end(Deadline deadline) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, deadline, [this] { return ended_; });
    }

  private:
    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable changed_;
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, std::optional<Answer>> expected_;
    bool ended_ = false;
};

// The answering end: runs each request on a thread of its own, since any of them may hang in the
// kernel. Any thread.
class RequestThreads {
  public:
    explicit RequestThreads(std::size_t max) : max_(max) {}
    ~RequestThreads();  // waits for all of them: a process that exits uses _exit()
    RequestThreads(RequestThreads const&) = delete;
    RequestThreads& operator=(RequestThreads const&) = delete;

    // False when `max` are at work. `step`: it changes something, until this deadline.
    [[nodiscard]] bool begin(std::optional<Deadline> step, std::function<void()> work);
    // Waits until those that change something are done, because no other process would finish them.
    // Not forever: one that lasts longer than `grace` beyond its deadline hangs.
    void finish_steps(std::chrono::milliseconds grace);

  private:
    void end(std::optional<Deadline> step);

    std::size_t const max_;
    std::mutex mutex_;  // guards the members below
    std::condition_variable ended_;
    std::size_t at_work_ = 0;
    std::multiset<Deadline> steps_;  // of those at work
};

}  // namespace vfmgr
