// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/tcp_stream.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "api/os/socket_address.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
constexpr int backlog = 64;

tl::unexpected<Error> gone(char const* call, int error_number) {
    Error error{Problem::unavailable, "the client disconnected", "start it again"};
    if (error_number != 0) error.causes.push_back(errno_cause(call, error_number));
    return fail(std::move(error));
}

bool again(int error_number) {
    return error_number == EAGAIN || error_number == EINTR;
}

}  // namespace

Result<void> TcpStream::wait(short events, Deadline deadline) const {
    pollfd ready{socket_.get(), events, 0};
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
    int const found = ::poll(&ready, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (found > 0 || (found < 0 && errno == EINTR)) return {};
    if (found < 0) return gone("poll", errno);
    return fail(Problem::timed_out, "the client sends nothing", "start it again");
}

Result<std::string> TcpStream::read(std::size_t bytes, Deadline deadline) {
    std::string message(bytes, '\0');
    for (std::size_t done = 0; done < bytes;) {
        VFMGR_CHECK(wait(POLLIN, deadline));
        auto const got = ::recv(socket_.get(), message.data() + done, bytes - done, MSG_DONTWAIT);
        if (got == 0) return gone("recv", 0);
        if (got < 0 && !again(errno)) return gone("recv", errno);
        if (got > 0) done += static_cast<std::size_t>(got);
    }
    return message;
}

Result<void> TcpStream::write(std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
        VFMGR_CHECK(wait(POLLOUT, deadline));
        auto const put =
            ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && !again(errno)) return gone("send", errno);
        if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

void TcpStream::cut() const {
    ::shutdown(socket_.get(), SHUT_RDWR);
}

void TcpStream::end_hard() const {
    linger const now{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Result<FileDescriptor> listen_tcp(verify::SocketPlace const& place) {
    VFMGR_TRY(auto fd, verify::open_socket(place, SOCK_STREAM));
    if (::listen(fd.get(), backlog) == 0) return fd;
    return fail(verify::socket_error(place, SOCK_STREAM, "listen"));
}

std::uint16_t port_of(FileDescriptor const& listener) {
    SocketAddress bound;
    auto* const room = bound.room();
    if (::getsockname(listener.get(), room, &bound.length) != 0) return 0;
    auto const* const v4 = reinterpret_cast<sockaddr_in const*>(room);
    auto const* const v6 = reinterpret_cast<sockaddr_in6 const*>(room);
    return ntohs(room->sa_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

}  // namespace vfmgr::interop
