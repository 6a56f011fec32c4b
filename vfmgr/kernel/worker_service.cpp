// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker_service.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace vfmgr {

WorkerService::WorkerService(FileDescriptor socket, Kernel& kernel, KernelSubject const& subject)
    : socket_(std::move(socket)), kernel_(kernel), subject_(subject) {}

WorkerService::~WorkerService() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return underway_ == 0; });
}

void WorkerService::run() {
    Lines lines;
    std::array<char, 4096> buffer{};
    while (true) {
        auto const got = ::read(socket_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || !lines.add({buffer.data(), static_cast<std::size_t>(got)})) return;
        while (auto const line = lines.next()) {
            auto request = parse_request(*line);
            if (!request) return;
            begin(std::move(*request));
        }
    }
}

void WorkerService::begin(WorkerRequest request) {
    std::optional<Deadline> step;
    if (request.step)
        step = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.milliseconds);
    std::lock_guard const lock(mutex_);
    ++underway_;
    if (step) steps_.insert(*step);
    std::thread([this, step, request = std::move(request)] {
        send(answer(request));
        end(step);
    }).detach();
}

void WorkerService::end(std::optional<Deadline> step) {
    std::lock_guard const lock(mutex_);
    --underway_;
    if (step) steps_.erase(steps_.find(*step));
    ended_.notify_all();
}

void WorkerService::finish_steps() {
    std::unique_lock lock(mutex_);
    auto const all = [this] { return steps_.empty(); };
    if (!all()) ended_.wait_until(lock, *steps_.rbegin() + step_grace, all);
}

WorkerAnswer WorkerService::answer(WorkerRequest const& request) {
    WorkerAnswer answer{request.id, {}, {}, {}, {}};
    if (request.firmware) {
        auto const* const function = std::get_if<PciAddress>(&subject_);
        if (!function)
            answer.error = Error{Problem::internal, "the host's network is not a card", ""};
        else if (auto cards = kernel_.read_firmware(*function))
            answer.firmware = std::move(*cards);
        else
            answer.error = cards.error();
        return answer;
    }
    if (!request.step) {
        if (auto view = kernel_.observe(subject_))
            answer.view = std::move(*view);
        else
            answer.error = view.error();
        return answer;
    }
    auto const deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request.milliseconds);
    if (auto observed = kernel_.perform(*request.step, deadline)) {
        answer.remarks = std::move(observed->remarks);
        answer.counters = observed->counters;
    } else {
        answer.error = observed.error();
    }
    return answer;
}

// The daemon always reads; when it is gone the answer is not needed.
void WorkerService::send(WorkerAnswer const& answer) {
    auto const line = to_line(answer);
    std::lock_guard const lock(mutex_);
    for (std::size_t sent = 0; sent < line.size();) {
        auto const now =
            ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (now < 0 && errno != EINTR) return;
        if (now > 0) sent += static_cast<std::size_t>(now);
    }
}

}  // namespace vfmgr
