// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stock/rping_process.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "api/types/child_process.hpp"
#include "api/types/event.hpp"
#include "api/types/text.hpp"
#include "guest-tools/stock/cm_server.hpp"

namespace vfmgr::stock {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds start_time{10}, end_time{1};
constexpr std::chrono::milliseconds tell_every{500};
constexpr std::size_t message_bytes_max = 1024;
constexpr std::string_view ready = "ready";

// One message of the socket; nothing when there is none.
std::optional<std::string> receive_message(int socket, int flags) {
    std::array<char, message_bytes_max> room{};
    auto const got = ::recv(socket, room.data(), room.size(), flags);
    if (got <= 0) return std::nullopt;
    return std::string(room.data(), static_cast<std::size_t>(got));
}

void send_message(int socket, std::string_view message) {
    // Nobody listens any more when it fails.
    static_cast<void>(
        ::send(socket, message.data(), std::min(message.size(), message_bytes_max), MSG_NOSIGNAL));
}

std::vector<std::string> words_of(Terms const& terms) {
    auto const& permit = terms.permit;
    return {to_string(permit.peer_address), to_string(permit.host_address), permit.host_netdev,
            std::to_string(terms.cm_port), std::to_string(seconds_left(terms.until))};
}

std::optional<Terms> terms_in(std::vector<std::string> const& words) {
    if (words.size() != 5) return std::nullopt;
    auto const peer = IpAddress::parse(words[0]);
    auto const host = IpAddress::parse(words[1]);
    auto const port = parse_digits(words[3], {10, 1, 5, 65535});
    auto const seconds = parse_digits(words[4], {10, 1, 5});
    if (!peer || !host || !port || !seconds) return std::nullopt;
    Terms terms;
    terms.permit.peer_address = *peer;
    terms.permit.host_address = *host;
    terms.permit.host_netdev = words[2];
    terms.cm_port = static_cast<std::uint16_t>(*port);
    terms.until = Steady::now() + std::chrono::seconds(*seconds);
    return terms;
}

Error not_started(char const* call, int error_number) {
    Error error{Problem::unavailable, "rping's server can't be started", "see the cause"};
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

}  // namespace

Result<std::unique_ptr<RpingProcess>> RpingProcess::start(std::vector<std::string> program,
                                                          Terms const& terms) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail(not_started("socketpair", errno));
    FileDescriptor own(ends[0]), childs(ends[1]);
    for (auto& word : words_of(terms)) program.push_back(std::move(word));
    std::vector<char*> words;
    for (auto& word : program) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, childs.get(), STDIN_FILENO);
    pid_t child = 0;
    int const error = ::posix_spawn(&child, words.front(), &files, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) return fail(not_started("posix_spawn", error));
    childs.reset();  // so that its end is seen
    std::unique_ptr<RpingProcess> made(new RpingProcess(child, std::move(own)));
    VFMGR_CHECK(made->await_ready(Steady::now() + start_time));
    return made;
}

Result<void> RpingProcess::await_ready(Deadline deadline) {
    auto const readiness = await_readable(std::array{socket_.get()}, deadline);
    auto const said =
        readiness == Readiness::readable ? receive_message(socket_.get(), 0) : std::nullopt;
    if (said == ready) return {};
    return fail(Problem::unsupported, said ? *said : "rping's server ended without a word",
                "see the kernel's log");
}

RpingProcess::~RpingProcess() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (!await_end_of(child_, Steady::now() + end_time)) ::kill(child_, SIGKILL);
    static_cast<void>(bury(child_));
}

Served RpingProcess::served() const {
    std::lock_guard const lock(mutex_);
    while (auto const told = receive_message(socket_.get(), MSG_DONTWAIT)) {
        std::string_view rest = *told;
        auto const first = take_until(rest, ' ');
        auto const served = first ? parse_digits(*first, {}) : std::nullopt;
        auto const refused = parse_digits(rest, {});
        if (served && refused) served_ = {*served, *refused};
    }
    return served_;
}

int serve_rping(std::vector<std::string> const& words) {
    auto const terms = terms_in(words);
    if (!terms) return 2;
    // What is sent to the daemon's group is not for it: it ends with its standard input.
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    auto const server = CmServer::start(*terms);
    if (!server) {
        auto const& error = server.error();
        send_message(STDIN_FILENO, detail_with_causes(error) + "; " + error.remedy);
        return 1;
    }
    send_message(STDIN_FILENO, ready);
    Served told;
    while (Steady::now() < terms->until) {
        auto const ended = await_readable(std::array{STDIN_FILENO}, Steady::now() + tell_every);
        if (ended != Readiness::deadline_passed) break;
        auto const now = (*server)->served();
        if (now.served == told.served && now.refused == told.refused) continue;
        told = now;
        send_message(STDIN_FILENO, fmt::format("{} {}", now.served, now.refused));
    }
    return 0;
}

}  // namespace vfmgr::stock
