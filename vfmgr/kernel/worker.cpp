// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "api/types/json_text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t line_bytes_max = 16 << 20;  // a PF with 1,000 VFs: 0.6 MB

template <class T>
std::string line_of(T const& message) {
    std::string text;
    JsonText::append(text, message);
    return text + "\n";
}

}  // namespace

template <class F, Of<WorkerRequest> V>
void fields(F& f, V& request) {
    f.value("id", request.id);
    f.maybe("step", request.step);
    f.defaulted("reads", request.reads);
    f.value("milliseconds", request.milliseconds);
}

void check(JsonReader& reader, WorkerRequest const& request) {
    if (request.step && !std::holds_alternative<KernelStep>(*request.step))
        reader.complain("step", "must be a step of the kernel");
}

void append_json(std::string& text, WorkerRequest const& request) {
    JsonText writer(text);
    fields(writer, request);
}

template <class F, Of<WorkerAnswer> V>
void fields(F& f, V& answer) {
    f.value("id", answer.id);
    f.maybe("error", answer.error);
    f.maybe("view", answer.view);
    f.maybe("firmware", answer.firmware);
    f.value("remarks", answer.remarks);
    f.maybe("counters", answer.counters);
    f.maybe("traffic", answer.traffic);
}

std::string to_line(WorkerRequest const& request) {
    return line_of(request);
}

std::string to_line(WorkerAnswer const& answer) {
    return line_of(answer);
}

Result<WorkerRequest> parse_request(std::string_view line) {
    return from_json_text<WorkerRequest>(line);
}

Result<WorkerAnswer> parse_answer(std::string_view line) {
    return from_json_text<WorkerAnswer>(line);
}

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

void WorkerService::read(WorkerReads reads, WorkerAnswer& answer) {
    auto const* const function = std::get_if<PciAddress>(&subject_);
    auto const into = [&answer](auto& member, auto read) {
        if (read)
            member = std::move(*read);
        else
            answer.error = read.error();
    };
    if (reads == WorkerReads::view) return into(answer.view, kernel_.observe(subject_));
    if (function == nullptr) {
        answer.error = Error{Problem::internal, "the host's network is no PF", ""};
    } else if (reads == WorkerReads::firmware) {
        into(answer.firmware, kernel_.read_firmware(*function));
    } else if (auto traffic = kernel_.read_traffic(*function); !traffic) {
        answer.error = traffic.error();
    } else if (!traffic->empty()) {
        answer.traffic = std::move(traffic->front());
    }
}

WorkerAnswer WorkerService::answer(WorkerRequest const& request) {
    WorkerAnswer answer{request.id, {}, {}, {}, {}};
    if (!request.step) {
        read(request.reads, answer);
        return answer;
    }
    auto const deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request.milliseconds);
    if (auto observed = kernel_.perform(std::get<KernelStep>(*request.step), deadline)) {
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
