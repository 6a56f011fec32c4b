// SPDX-License-Identifier: Apache-2.0
#include "service/guest/dialogue.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace vfmgr::guestd {
namespace {

// The other end may have this many underway: vfmgr-guestd asks on four threads, vfmgrd for a few
// clients.
constexpr std::size_t requests_max = 32;
constexpr timeval send_time{10, 0};

}  // namespace

Dialogue::Dialogue(FileDescriptor socket, DialogueHooks hooks)
    : socket_(std::move(socket)), hooks_(std::move(hooks)), threads_(requests_max) {
    static_cast<void>(
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &send_time, sizeof send_time));
    receiver_ = std::thread([this] {
        static_cast<void>(
            each_line(socket_.get(), [this](std::string const& line) { return take(line); }));
        end();
        hooks_.ended();
    });
}

Dialogue::~Dialogue() {
    end();
    receiver_.join();
}

void Dialogue::end() {
    ::shutdown(socket_.get(), SHUT_RDWR);  // the receiver's read returns, and senders' writes
    answers_.end();
}

void Dialogue::send(Message const& message) {
    auto const line = to_line(message);
    std::lock_guard const lock(sending_);
    if (!send_all(socket_.get(), line)) end();
}

Result<Answer> Dialogue::ask(Request request, Deadline deadline) {
    auto const id = request.id = answers_.expect();
    send(request);
    auto answer = answers_.await(id, deadline);
    if (answer && answer->error) return fail(std::move(*answer->error));
    if (answer) return std::move(*answer);
    if (answers_.ended())
        return fail(Problem::unavailable, "the other process ended", "try again in a few seconds");
    return fail(Problem::timed_out, "the other process did not answer in time",
                "see what they report: journalctl -u vfmgrd -u vfmgr-guestd");
}

bool Dialogue::take(std::string const& line) {
    auto message = parse_message(line);
    if (!message) return false;
    if (auto* const answer = std::get_if<Answer>(&*message))
        return answers_.take(std::move(*answer)), true;
    if (auto* const request = std::get_if<Request>(&*message)) return begin(std::move(*request));
    return hooks_.take(*message);
}

bool Dialogue::begin(Request request) {
    auto const id = request.id;
    bool const begun = threads_.begin({}, [this, request = std::move(request)] {
        auto made = guarded([&] { return hooks_.answer(request); });
        Answer answer = made ? std::move(*made) : Answer{};
        if (!made) answer.error = std::move(made.error());
        answer.id = request.id;
        send(answer);
    });
    if (begun) return true;
    Answer refusal{id};
    refusal.error =
        Error{Problem::limit_exceeded, fmt::format("{} requests are underway", requests_max),
              "try again when some have ended"};
    send(refusal);
    return true;
}

}  // namespace vfmgr::guestd
