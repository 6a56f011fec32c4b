// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace vfmgr {
namespace {

constexpr std::chrono::seconds end_seconds_max{2};

}  // namespace

Worker::Worker(WorkerProcess process) : process_(std::move(process)) {
    receiver_ = std::thread([this] { receive(); });
}

Worker::~Worker() {
    kill();
    if (!await_end(std::chrono::steady_clock::now() + end_seconds_max)) {
        std::lock_guard const lock(mutex_);
        abandoned_ = true;
    }
    ::shutdown(process_.socket.get(), SHUT_RDWR);  // the receiver's read returns
    receiver_.join();
}

Result<WorkerAnswer> Worker::ask(WorkerRequest request, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (ended_) return fail(ended_error());
    auto const id = request.id = ++last_id_;
    asked_.emplace(id, std::nullopt);
    bool const sent = send(to_line(request));
    changed_.wait_until(lock, deadline, [&] { return !sent || asked_[id] || ended_; });
    auto answer = std::move(asked_[id]);
    asked_.erase(id);
    if (answer) return std::move(*answer);
    if (ended_) return fail(ended_error());
    return fail(Problem::timed_out,
                fmt::format("the worker (pid {}) did not answer in time", pid()),
                "see the kernel's log: journalctl -k");
}

// A request is small, and the worker always reads: a full socket means that it is stopped.
bool Worker::send(std::string const& line) const {
    auto const sent =
        ::send(process_.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == std::ssize(line);
}

void Worker::kill() {
    std::lock_guard const lock(mutex_);
    if (!ending_) process_.kill();
}

bool Worker::ended() const {
    std::lock_guard const lock(mutex_);
    return ended_;
}

bool Worker::await_end(Deadline deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [this] { return ended_; });
}

void Worker::receive() {
    Lines lines;
    std::array<char, 65536> buffer{};
    while (true) {
        auto const got = ::read(process_.socket.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (lines.add({buffer.data(), static_cast<std::size_t>(got)}) && take(lines)) continue;
        kill();  // it sent what no worker sends
    }
    {
        std::lock_guard const lock(mutex_);
        if (abandoned_) return;
        ending_ = true;
    }
    auto how = process_.end();
    std::lock_guard const lock(mutex_);
    ended_ = true;
    how_ = std::move(how);
    changed_.notify_all();
}

// Drops an answer whose request is no longer waiting.
bool Worker::take(Lines& lines) {
    while (auto const line = lines.next()) {
        auto answer = parse_answer(*line);
        if (!answer) return false;
        std::lock_guard const lock(mutex_);
        auto const asked = asked_.find(answer->id);
        if (asked == asked_.end()) continue;
        asked->second = std::move(*answer);
        changed_.notify_all();
    }
    return true;
}

Error Worker::ended_error() const {
    return {Problem::unavailable, fmt::format("the worker (pid {}) has ended: {}", pid(), how_),
            "see the log of vfmgrd: journalctl -u vfmgrd; a new worker takes over"};
}

}  // namespace vfmgr
