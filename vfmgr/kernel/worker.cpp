// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include "api/types/json_text.hpp"

namespace vfmgr {
namespace {}  // namespace

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
    if (ended()) return fail(ended_error());
    auto const id = request.id = answers_.expect();
    bool const sent = send(to_line(request));
    if (auto answer = answers_.await(id, sent ? deadline : Deadline{})) return std::move(*answer);
    if (ended()) return fail(ended_error());
    return fail(Problem::timed_out,
                fmt::format("the worker (pid {}) did not answer in time", pid()),
                "see the kernel's log: journalctl -k");
}

// A request is small, and the worker always reads: a full socket means that it is stopped.
bool Worker::send(std::string const& line) {
    std::lock_guard const lock(sending_);
    auto const sent =
        ::send(process_.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == std::ssize(line);
}

void Worker::kill() {
    std::lock_guard const lock(mutex_);
    if (!ending_) process_.kill();
}

void Worker::receive() {
    auto const take = [this](std::string const& line) {
        auto answer = parse_answer(line);
        if (answer) answers_.take(std::move(*answer));
        return answer.has_value();
    };
    // One that sends what no worker sends is killed; its socket ends when the process has ended.
    while (!each_line(process_.socket.get(), take)) kill();
    {
        std::lock_guard const lock(mutex_);
        if (abandoned_) return;
        ending_ = true;
    }
    auto how = process_.end();
    {
        std::lock_guard const lock(mutex_);
        how_ = std::move(how);
    }
    answers_.end();
}

Error Worker::ended_error() const {
    std::lock_guard const lock(mutex_);
    return {Problem::unavailable, fmt::format("the worker (pid {}) has ended: {}", pid(), how_),
            "see the log of vfmgrd: journalctl -u vfmgrd; a new worker takes over"};
}

// The daemon, which is the only one who asks, has few requests underway.
WorkerService::WorkerService(FileDescriptor socket, Kernel& kernel, KernelSubject const& subject)
    : socket_(std::move(socket)), kernel_(kernel), subject_(subject), threads_(SIZE_MAX) {}

void WorkerService::run() {
    auto const begin = [this](std::string const& line) {
        auto request = parse_request(line);
        if (!request) return false;
        std::optional<Deadline> step;
        if (request->step)
            step =
                std::chrono::steady_clock::now() + std::chrono::milliseconds(request->milliseconds);
        return threads_.begin(step, [this, request = std::move(*request)] {
            auto const answered = to_line(answer(request));
            std::lock_guard const lock(sending_);
            send_all(socket_.get(), answered);  // the daemon reads, or is gone
        });
    };
    static_cast<void>(each_line(socket_.get(), begin));
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

}  // namespace vfmgr
