// SPDX-License-Identifier: Apache-2.0
#include "api/os/message_lines.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace vfmgr {
namespace {

constexpr std::size_t line_bytes_max = 16 << 20;  // a PF with 1,000 VFs: 0.6 MB

}  // namespace

bool Lines::add(std::string_view bytes) {
    bytes_ += bytes;
    return bytes_.size() <= line_bytes_max;
}

std::optional<std::string> Lines::next() {
    auto const end = bytes_.find('\n', searched_);
    searched_ = end == bytes_.npos ? bytes_.size() : 0;
    if (end == bytes_.npos) return std::nullopt;
    auto line = bytes_.substr(0, end);
    bytes_.erase(0, end + 1);
    return line;
}

bool each_line(int socket, std::function<bool(std::string const& line)> const& take) {
    Lines lines;
    std::array<char, 65536> buffer{};
    while (true) {
        auto const got = ::read(socket, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        if (!lines.add({buffer.data(), static_cast<std::size_t>(got)})) return false;
        while (auto const line = lines.next())
            if (!take(*line)) return false;
    }
}

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        auto const sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

RequestThreads::~RequestThreads() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return at_work_ == 0; });
}

bool RequestThreads::begin(std::optional<Deadline> step, std::function<void()> work) {
    std::lock_guard const lock(mutex_);
    if (at_work_ >= max_) return false;
    ++at_work_;
    if (step) steps_.insert(*step);
    std::thread([this, step, work = std::move(work)] {
        work();
        end(step);
    }).detach();
    return true;
}

void RequestThreads::end(std::optional<Deadline> step) {
    std::lock_guard const lock(mutex_);
    --at_work_;
    if (step) steps_.erase(steps_.find(*step));
    ended_.notify_all();
}

void RequestThreads::finish_steps(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    auto const none = [this] { return steps_.empty(); };
    if (!none()) ended_.wait_until(lock, *steps_.rbegin() + grace, none);
}

}  // namespace vfmgr
