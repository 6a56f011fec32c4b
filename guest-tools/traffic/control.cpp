// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/control.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "guest-tools/traffic/messages.hpp"

namespace vfmgr::stream {
namespace {

using Steady = std::chrono::steady_clock;

template <class T>
void set(int fd, int level, int option, T const& value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
}

Error not_connected(SendOptions const& options, char const* call, int error_number) {
    auto const where = fmt::format("{} port {}", to_string(options.to), options.port);
    Error error{Problem::unavailable,
                fmt::format("no stream receiver can be reached at {}", where),
                fmt::format("check address and path: ping {}", to_string(options.to)),
                {errno_cause(call, error_number)}};
    if (error_number == ECONNREFUSED) {
        error.detail = fmt::format("no stream receiver listens on {}", where);
        error.remedy =
            fmt::format("start one on that machine: vf-guest stream receive --local {} --port {}",
                        to_string(options.to), options.port);
    } else if (error_number == ENETUNREACH || error_number == EHOSTUNREACH) {
        error.remedy = fmt::format("check the route: ip route get {}", to_string(options.to));
    } else if (error_number == ETIMEDOUT) {
        error.problem = Problem::timed_out;
        error.remedy = fmt::format(
            "let TCP and UDP port {} through the firewalls between, and "
            "check the path: ping {}",
            options.port, to_string(options.to));
    } else if (error_number == EADDRNOTAVAIL && options.local) {
        error.problem = Problem::not_found;
        error.detail = fmt::format("no netdev here has the address {}", to_string(*options.local));
        error.remedy = "name one of this machine's: ip -brief address";
    }
    return error;
}

template <class Call>
IpAddress address_by(Call call, int fd) {
    SocketAddress address;
    auto* const room = address.room();
    call(fd, room, &address.length);
    return address.address().value_or(IpAddress{});
}

// Waits for the connection, and returns its errno.
Result<int> await_connected(int fd, Deadline deadline, int stop) {
    while (true) {
        std::array<pollfd, 2> polled{{{fd, POLLOUT, 0}, {stop, POLLIN, 0}}};
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
        int const found =
            ::poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(left.count(), 0)));
        if (found > 0 && polled[1].revents != 0) return fail(stopped());
        if (found > 0) break;
        if (found == 0 && Steady::now() >= deadline) return ETIMEDOUT;
        if (found < 0 && errno != EINTR) return errno;
    }
    int error_number = 0;
    socklen_t length = sizeof error_number;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &length);
    return error_number;
}

}  // namespace

Error stopped() {
    return {Problem::unavailable, "the test was stopped", "start it again"};
}

// An end whose machine has died sends nothing: keepalives detect that in 11 s.
Control::Control(FileDescriptor socket, std::string who)
    : socket_(std::move(socket)), who_(std::move(who)) {
    set(fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd(), IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(fd(), IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set(fd(), IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(fd(), IPPROTO_TCP, TCP_NODELAY, 1);
}

IpAddress Control::local() const {
    return address_by(&::getsockname, fd());
}

IpAddress Control::peer() const {
    return address_by(&::getpeername, fd());
}

tl::unexpected<Error> Control::gone(char const* call, int error_number) const {
    Error error{Problem::unavailable, fmt::format("the {} disconnected", who_),
                fmt::format("read what the {} printed on its machine", who_)};
    if (error_number != 0) error.causes.push_back(errno_cause(call, error_number));
    return fail(std::move(error));
}

Result<std::optional<std::string>> Control::line_now() {
    while (true) {
        if (auto const end = read_.find('\n'); end != std::string::npos) {
            auto line = read_.substr(0, end);
            read_.erase(0, end + 1);
            return line;
        }
        if (read_.size() > line_bytes_max)
            return fail(
                Problem::guest_refused,
                fmt::format("the {} sent a line of more than {} bytes", who_, line_bytes_max),
                "use the same version of vf-guest on both machines");
        std::array<char, line_bytes_max> room;
        auto const got = ::recv(fd(), room.data(), room.size(), MSG_DONTWAIT);
        if (got == 0) return gone("recv", 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return std::nullopt;
        if (got < 0) return gone("recv", errno);
        read_.append(room.data(), static_cast<std::size_t>(got));
    }
}

Result<std::string> Control::line(Deadline deadline, int stop) {
    while (true) {
        VFMGR_TRY(auto line, line_now());
        if (line) return std::move(*line);
        VFMGR_TRY(auto const ready, await_readable(std::array{fd(), stop}, deadline));
        if (ready == Readiness::deadline_passed)
            return fail(Problem::timed_out, fmt::format("the {} does not answer", who_),
                        fmt::format("read what the {} printed on its machine", who_));
        if (is_readable(stop)) return fail(stopped());
    }
}

// Never waits: each end sends two lines, and the socket's buffer holds more than that.
Result<void> Control::send(std::string line) {
    line += '\n';
    auto const put = ::send(fd(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (std::cmp_equal(put, line.size())) return {};
    return gone("send", put < 0 ? errno : EAGAIN);
}

Result<std::string> Control::ask(std::string text, Deadline deadline, int stop) {
    VFMGR_CHECK(send(std::move(text)));
    return line(deadline, stop);
}

Result<Control> connect_to(SendOptions const& options, Deadline deadline, int stop) {
    auto const refused = [&](char const* call, int error_number) {
        return fail(not_connected(options, call, error_number));
    };
    if (options.local && options.local->family != options.to.family)
        return fail(Problem::invalid_request,
                    fmt::format("{} can't be reached from {}: one is IPv4, the other IPv6",
                                to_string(options.to), to_string(*options.local)),
                    "name two addresses of the same family");
    bool const v4 = options.to.family == IpAddress::Family::v4;
    FileDescriptor fd(
        ::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return refused("socket", errno);
    if (options.local) {
        auto const local = SocketAddress::of(*options.local, 0);
        if (::bind(fd.get(), local.get(), local.length) != 0) return refused("bind", errno);
    }
    auto const to = SocketAddress::of(options.to, options.port);
    if (::connect(fd.get(), to.get(), to.length) != 0 && errno != EINPROGRESS)
        return refused("connect", errno);
    VFMGR_TRY(int const error_number, await_connected(fd.get(), deadline, stop));
    if (error_number != 0) return refused("connect", error_number);
    return Control(std::move(fd), "receiver");
}

}  // namespace vfmgr::stream
