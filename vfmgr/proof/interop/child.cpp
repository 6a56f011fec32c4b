// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/child.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "api/os/descriptor.hpp"
#include "api/os/process.hpp"

namespace vfmgr::interop {
namespace {

constexpr std::chrono::seconds end_time{1}, kill_time{10};

// Returns one message from the socket; nothing when there is none.
std::optional<std::string> receive_message(int socket, int flags) {
    std::array<char, message_bytes_max> room{};
    auto const got = ::recv(socket, room.data(), room.size(), flags);
    if (got <= 0) return std::nullopt;
    return std::string(room.data(), static_cast<std::size_t>(got));
}

Error not_started(std::string_view what, char const* call, int error_number) {
    Error error{Problem::unavailable, fmt::format("{} can't be started", what),
                "check the cause: it is the kernel's own error"};
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(std::vector<std::string> words, std::string_view what) {
    auto ends = socket_pair(SOCK_SEQPACKET);
    if (!ends) return fail(not_started(what, "socketpair", ends.error()));
    auto& [own, childs] = *ends;
    auto const program = words.front();
    auto const pid = spawn({.arguments = std::move(words),
                            .program = program,
                            .descriptors = {{childs.get(), STDIN_FILENO}}});
    if (!pid) return fail(not_started(what, "posix_spawn", pid.error()));
    // The child must hold the only copy of the other end: then EOF shows that the child has ended.
    return std::unique_ptr<Child>(new Child(*pid, std::move(own)));
}

Child::~Child() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (!await_end_of(pid_, std::chrono::steady_clock::now() + end_time)) ::kill(pid_, SIGKILL);
    if (await_end_of(pid_, std::chrono::steady_clock::now() + kill_time))
        static_cast<void>(reap(pid_));
}

// The socket closes a little before the child exits. The destructor reaps the child.
std::string Child::how_ended() const {
    siginfo_t end{};
    if (!await_end_of(pid_, std::chrono::steady_clock::now() + end_time) ||
        ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0)
        return "an unknown status";
    return fmt::format("{} {}", end.si_code == CLD_EXITED ? "exit status" : "signal",
                       end.si_status);
}

std::optional<std::string> Child::receive(Deadline deadline) const {
    auto const readiness = await_readable(std::array{socket_.get()}, deadline);
    if (!readiness || *readiness == Readiness::deadline_passed) return std::nullopt;
    return receive_message(socket_.get(), 0);
}

std::optional<std::string> Child::received() const {
    return receive_message(socket_.get(), MSG_DONTWAIT);
}

void Child::end_input() const {
    ::shutdown(socket_.get(), SHUT_WR);
}

void report_to_parent(std::string_view message) {
    // Fails only when the parent no longer reads.
    static_cast<void>(::send(STDIN_FILENO, message.data(),
                             std::min(message.size(), message_bytes_max), MSG_NOSIGNAL));
}

bool await_end_of_input(Deadline deadline) {
    auto const readiness = await_readable(std::array{STDIN_FILENO}, deadline);
    return !readiness || *readiness == Readiness::readable;
}

}  // namespace vfmgr::interop
