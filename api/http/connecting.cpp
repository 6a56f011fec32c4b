// SPDX-License-Identifier: Apache-2.0
#include "api/http/connecting.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
// linux/vm_sockets.h needs struct sockaddr declared before it.
#include <linux/vm_sockets.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <optional>
#include <random>
#include <thread>

#include "api/os/socket_address.hpp"
#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

std::chrono::milliseconds left(Deadline deadline) {
    auto const now = std::chrono::steady_clock::now();
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
}

tl::unexpected<Error> too_late(Target const& target) {
    return fail(not_accepted_in_time(target));
}

tl::unexpected<Error> unreachable(Target const& target, std::string call, int error) {
    if (error == EACCES || error == EPERM) {
        Error denied{Problem::forbidden,
                     fmt::format("no permission to connect to {}", describe(target)),
                     "run as root, or join the socket's group: usermod -aG vfmgr USER"};
        denied.causes.push_back(errno_cause(std::move(call), error));
        return fail(std::move(denied));
    }
    Error out{Problem::unavailable,
              fmt::format("can't connect to {}: {}", describe(target), std::strerror(error)),
              remedy_of(target)};
    out.causes.push_back(errno_cause(std::move(call), error));
    return fail(std::move(out));
}

// On a unix socket with a full backlog, a non-blocking connect() fails at once and leaves no event
// to wait for. A blocking one waits up to the send timeout (unix(7), socket(7)).
Result<FileDescriptor> connect_unix(UnixTarget const& target, Deadline deadline) {
    auto const address = SocketAddress::of_unix(target.path);
    if (!address)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' can't be a socket path: 1 to {} characters are possible",
                                target.path, unix_path_max),
                    "give the path of vfmgrd's socket");
    FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return unreachable(target, "socket", errno);
    auto const wait = std::max(left(deadline), std::chrono::milliseconds(1));
    timeval const timeout{.tv_sec = wait.count() / 1000, .tv_usec = wait.count() % 1000 * 1000};
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0)
        return unreachable(target, "setsockopt", errno);
    if (::connect(fd.get(), address->get(), address->length) != 0) {
        if (errno == EAGAIN || errno == EINTR) return too_late(target);
        return unreachable(target, "connect", errno);
    }
    if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return unreachable(target, "fcntl", errno);
    return fd;
}

Result<void> wait_connected(int fd, Target const& target, Deadline deadline) {
    pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
    int ready = -1;
    do {
        ready = ::poll(&waiting, 1, static_cast<int>(left(deadline).count()));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) return unreachable(target, "poll", errno);
    if (ready == 0) return too_late(target);
    return connected(fd, target);
}

Result<FileDescriptor> connect_stream(FileDescriptor fd, SocketAddress const& address,
                                      Target const& target, Deadline deadline) {
    if (::connect(fd.get(), address.get(), address.length) != 0) {
        if (errno != EINPROGRESS) return unreachable(target, "connect", errno);
        VFMGR_CHECK(wait_connected(fd.get(), target, deadline));
    }
    return fd;
}

FileDescriptor new_socket(int family) {
    return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

constexpr unsigned privileged_begin = 512;
constexpr unsigned privileged_end = 1024;

// Uses each port once in 512 calls. A vsock port is free again before the peer has torn down its
// last connection, whose late reset would end the new one (net/vmw_vsock/virtio_transport_common.c:
// virtio_transport_close() answers a peer's shutdown with a second reset).
unsigned next_privileged_port() {
    static std::atomic<unsigned> next{std::random_device{}()};
    return privileged_begin + next++ % (privileged_end - privileged_begin);
}

// Linux picks vsock ports from 1024 up; a privileged port must be named (net/vmw_vsock/af_vsock.c).
Result<void> bind_privileged(int fd) {
    for (unsigned tried = privileged_begin; tried < privileged_end; ++tried) {
        auto const address = SocketAddress::of_vsock(VMADDR_CID_ANY, next_privileged_port());
        if (::bind(fd, address.get(), address.length) == 0) return {};
        if (errno != EADDRINUSE) break;
    }
    Error error{errno == EACCES ? Problem::forbidden : Problem::unavailable,
                "no vsock source port below 1024 could be bound",
                "run as root: the host answers only privileged ports"};
    error.causes.push_back(errno_cause("bind", errno));
    return fail(std::move(error));
}

Result<FileDescriptor> connect_vsock(VsockTarget const& target, Deadline deadline) {
    FileDescriptor fd = new_socket(AF_VSOCK);
    if (!fd) return unreachable(target, "socket", errno);
    if (target.source == SourcePort::privileged) VFMGR_CHECK(bind_privileged(fd.get()));
    return connect_stream(std::move(fd), SocketAddress::of_vsock(target.cid, target.port), target,
                          deadline);
}

// getaddrinfo() takes no deadline, so it runs in a thread that is abandoned at the deadline.
std::optional<Resolved> resolve_until(TlsTarget const& target, Deadline deadline) {
    if (auto const address = numeric_address(target)) return Resolved{0, {*address}};
    auto promise = std::make_shared<std::promise<Resolved>>();
    auto future = promise->get_future();
    std::thread([promise, host = target.host, port = std::to_string(target.port)] {
        promise->set_value(resolve(host, port));
    }).detach();
    if (future.wait_until(deadline) != std::future_status::ready) return std::nullopt;
    return future.get();
}

// A machine with several NICs in one network reaches each of its peers from the right one.
Result<void> bind_locally(int fd, TlsTarget const& target) {
    auto const from = IpAddress::parse(target.local_address);
    if (target.local_address.empty() || !from) return {};
    auto const address = SocketAddress::of(*from, 0);
    if (::bind(fd, address.get(), address.length) == 0) return {};
    return unreachable(target, "bind " + target.local_address, errno);
}

Result<FileDescriptor> connect_tls(TlsTarget const& target, Deadline deadline) {
    auto const resolved = resolve_until(target, deadline);
    if (!resolved) return too_late(target);
    if (resolved->error != 0) return fail(has_no_address(target, resolved->error));
    Result<FileDescriptor> last = too_late(target);
    for (auto const& address : resolved->addresses) {
        last = begin_to_connect(address, target);
        if (!last) continue;
        if (auto const done = wait_connected(last->get(), target, deadline); !done)
            last = fail(done.error());
        else
            return last;
    }
    return last;
}

}  // namespace

Result<FileDescriptor> connect_to(Target const& target, Deadline deadline) {
    if (auto const* local = std::get_if<UnixTarget>(&target)) return connect_unix(*local, deadline);
    if (auto const* vsock = std::get_if<VsockTarget>(&target))
        return connect_vsock(*vsock, deadline);
    return connect_tls(std::get<TlsTarget>(target), deadline);
}

std::optional<SocketAddress> numeric_address(TlsTarget const& target) {
    auto const address = IpAddress::parse(target.host);
    if (!address) return std::nullopt;
    return SocketAddress::of(*address, target.port);
}

Resolved resolve(std::string const& host, std::string const& port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    Resolved resolved{.error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found),
                      .addresses = {}};
    if (resolved.error != 0) return resolved;
    for (auto const* each = found; each; each = each->ai_next) {
        SocketAddress address;
        address.length = each->ai_addrlen;
        std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
        resolved.addresses.push_back(address);
    }
    ::freeaddrinfo(found);
    return resolved;
}

Error has_no_address(TlsTarget const& target, int error) {
    return {Problem::unavailable,
            fmt::format("the name '{}' has no address: {}", target.host, ::gai_strerror(error)),
            "check the name, or give an IP address"};
}

Result<FileDescriptor> begin_to_connect(SocketAddress const& address, TlsTarget const& target) {
    FileDescriptor fd = new_socket(address.storage.ss_family);
    if (!fd) return unreachable(target, "socket", errno);
    // The request must not wait for the ACK of the handshake's last message.
    int const one = 1;
    (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    VFMGR_CHECK(bind_locally(fd.get(), target));
    if (::connect(fd.get(), address.get(), address.length) == 0 || errno == EINPROGRESS) return fd;
    return unreachable(target, "connect", errno);
}

Result<void> connected(int fd, Target const& target) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return unreachable(target, "connect", error);
    return {};
}

Error not_accepted_in_time(Target const& target) {
    return {Problem::timed_out, fmt::format("{} accepted no connection in time", describe(target)),
            remedy_of(target)};
}

std::string describe(Target const& target) {
    if (auto const* local = std::get_if<UnixTarget>(&target)) return local->path;
    if (auto const* vsock = std::get_if<VsockTarget>(&target))
        return fmt::format("vsock {}:{}", vsock->cid, vsock->port);
    return "https://" + authority(target);
}

std::string remedy_of(Target const& target) {
    if (std::holds_alternative<UnixTarget>(target))
        return "start the daemon: systemctl start vfmgrd; or name its socket with --socket";
    if (std::holds_alternative<VsockTarget>(target))
        return "check that vfmgrd runs on the host and that the VM has a vsock device";
    return "check that vfmgrd runs there, listens on this address and port, and that no firewall "
           "blocks it";
}

std::string authority(Target const& target) {
    auto const* tls = std::get_if<TlsTarget>(&target);
    if (!tls) return "localhost";
    return to_string(HostPort{tls->host, tls->port});
}

}  // namespace vfmgr::http
