// SPDX-License-Identifier: Apache-2.0
#include "api/http/listening.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
// linux/vm_sockets.h needs struct sockaddr declared before it.
#include <linux/vm_sockets.h>

#include <algorithm>
#include <cstring>
#include <variant>
#include <vector>

#include "api/os/socket_address.hpp"

namespace vfmgr::http {
namespace {

// As many as the kernel allows (net.core.somaxconn): a flood of connections would fill a short
// queue, and others would wait a second until they try again.
constexpr int backlog = SOMAXCONN;

tl::unexpected<Error> refused_by(std::string call, int error, std::string detail,
                                 std::string remedy) {
    Error out{Problem::kernel_refused, std::move(detail), std::move(remedy)};
    out.detail += fmt::format(": {}", std::strerror(error));
    out.causes.push_back(errno_cause(std::move(call), error));
    return fail(std::move(out));
}

Result<FileDescriptor> open_socket(int family) {
    FileDescriptor fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd)
        return refused_by("socket", errno, fmt::format("no socket of address family {}", family),
                          "load the kernel module of this address family");
    return fd;
}

// Removes the socket file at `path` when the last copy of the result is gone, if it is still the
// same file.
Held hold_socket_file(std::string const& path) {
    struct stat made{};
    if (::lstat(path.c_str(), &made) != 0) return {};
    return held([path, made] {
        struct stat now{};
        if (::lstat(path.c_str(), &now) != 0) return;
        if (now.st_dev == made.st_dev && now.st_ino == made.st_ino) ::unlink(path.c_str());
    });
}

Result<ListeningSocket> start_listening(FileDescriptor fd, Held file, std::string const& name) {
    if (::listen(fd.get(), backlog) != 0)
        return refused_by("listen", errno, fmt::format("can't listen on {}", name),
                          "see the cause; another program may hold the same address");
    return ListeningSocket{std::move(fd), std::move(file)};
}

Result<SocketAddress> unix_address(std::string const& path) {
    if (auto const address = SocketAddress::of_unix(path)) return *address;
    return fail(Problem::invalid_request,
                fmt::format("the socket path '{}' has {} characters, 1 to {} are possible", path,
                            path.size(), unix_path_max),
                "choose a shorter path");
}

Result<gid_t> group_id(std::string const& name) {
    std::vector<char> buffer(16 * 1024);
    group entry{};
    group* found = nullptr;
    int const error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error != 0)
        return refused_by("getgrnam_r", error, fmt::format("can't look up group '{}'", name),
                          "check /etc/nsswitch.conf and /etc/group");
    if (!found)
        return fail(Problem::not_found, fmt::format("there is no group '{}'", name),
                    fmt::format("create it: groupadd --system {}", name));
    return entry.gr_gid;
}

// A socket file outlives its process. Only connecting shows whether a process still listens.
Result<void> remove_stale(std::string const& path, SocketAddress const& address) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return {};
    if (!S_ISSOCK(status.st_mode))
        return fail(Problem::conflict, fmt::format("{} exists and is not a socket", path),
                    "remove it, or choose another socket path");
    VFMGR_TRY(FileDescriptor probe, open_socket(AF_UNIX));
    if (::connect(probe.get(), address.get(), address.length) == 0 || errno == EAGAIN)
        return fail(Problem::conflict, fmt::format("another process listens on {}", path),
                    "stop the other daemon, or choose another socket path");
    if (errno != ECONNREFUSED && errno != ENOENT)
        return refused_by("connect", errno, fmt::format("can't tell whether {} is in use", path),
                          "remove the socket file when no daemon uses it");
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        return refused_by("unlink", errno, fmt::format("can't remove the old {}", path),
                          "make the folder writable for the daemon");
    return {};
}

// bind() creates the file with the socket inode's mode less the umask (unix_bind in the kernel).
// The file is therefore created 0600, gets its group, and only then its mode: it is never wider
// than configured, and the process-wide umask stays untouched.
Result<ListeningSocket> listen_at(UnixListen const& where) {
    VFMGR_TRY(SocketAddress const address, unix_address(where.path));
    gid_t group = static_cast<gid_t>(-1);
    if (!where.group.empty()) {
        VFMGR_TRY(group, group_id(where.group));
    }
    VFMGR_CHECK(remove_stale(where.path, address));
    VFMGR_TRY(FileDescriptor fd, open_socket(AF_UNIX));
    if (::fchmod(fd.get(), 0600) != 0)
        return refused_by("fchmod", errno, "can't restrict a new socket", "see the cause");
    if (::bind(fd.get(), address.get(), address.length) != 0)
        return refused_by("bind", errno, fmt::format("can't create the socket {}", where.path),
                          "create the folder, writable for the daemon");
    auto file = hold_socket_file(where.path);
    if (group != static_cast<gid_t>(-1) &&
        ::chown(where.path.c_str(), static_cast<uid_t>(-1), group) != 0)
        return refused_by("chown", errno,
                          fmt::format("can't give {} to group '{}'", where.path, where.group),
                          "run the daemon as root or as a member of the group");
    if (::chmod(where.path.c_str(), where.mode) != 0)
        return refused_by("chmod", errno,
                          fmt::format("can't set mode {:04o} on {}", where.mode, where.path),
                          "see the cause");
    return start_listening(std::move(fd), std::move(file), where.path);
}

int socket_option(int fd, int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

Result<ListeningSocket> listen_at(InheritedListen const& where) {
    if (socket_option(where.fd, SO_ACCEPTCONN) != 1 ||
        socket_option(where.fd, SO_TYPE) != SOCK_STREAM)
        return fail(
            Problem::invalid_request,
            fmt::format("the inherited descriptor {} is not a listening stream socket", where.fd),
            "use ListenStream= and Accept=no in the .socket unit");
    int const family = family_of(where.fd);
    if (family != AF_UNIX && family != AF_VSOCK)
        return fail(
            Problem::invalid_request,
            fmt::format("the inherited descriptor {} is a TCP socket without TLS", where.fd),
            "let systemd listen on a unix socket; configure TLS in vfmgr.toml");
    if (::fcntl(where.fd, F_SETFL, O_NONBLOCK) != 0 || ::fcntl(where.fd, F_SETFD, FD_CLOEXEC) != 0)
        return refused_by("fcntl", errno, fmt::format("can't use descriptor {}", where.fd),
                          "see the cause");
    return ListeningSocket{FileDescriptor(where.fd), {}};
}

// Linux takes packets for any of its addresses on every interface.
Result<void> keep_to_interface(int fd, TlsListen const& where) {
    int const one = 1;
    auto const size = static_cast<socklen_t>(where.interface.size());
    bool const kept =
        ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, where.interface.c_str(), size) == 0 &&
        ::setsockopt(fd, SOL_IP, IP_FREEBIND, &one, sizeof one) == 0;
    if (kept) return {};
    return refused_by("setsockopt", errno, fmt::format("can't listen on {}", where.interface),
                      "check that the interface exists: ip link");
}

Result<ListeningSocket> listen_at(TlsListen const& where) {
    auto const ip = IpAddress::parse(where.address);
    if (!ip)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is not an IP address to listen on", where.address),
                    "give an address such as 127.0.0.1, 0.0.0.0 or ::");
    auto const address = SocketAddress::of(*ip, where.port);
    VFMGR_TRY(FileDescriptor fd, open_socket(address.storage.ss_family));
    // A restarted daemon rebinds its port while old connections are in TIME_WAIT.
    int const one = 1;
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    auto const name = fmt::format("{} port {}", where.address, where.port);
    if (!where.interface.empty()) VFMGR_CHECK(keep_to_interface(fd.get(), where));
    if (::bind(fd.get(), address.get(), address.length) != 0)
        return refused_by("bind", errno, fmt::format("can't listen on {}", name),
                          "choose an address of this host and a free port");
    return start_listening(std::move(fd), {}, name);
}

// SO_PEERCRED gives only the primary group. The kernel allows a process 65536 supplementary groups.
std::optional<std::vector<std::uint32_t>> peer_groups(int fd) {
    std::vector<std::uint32_t> groups(32);
    auto size = static_cast<socklen_t>(groups.size() * sizeof(std::uint32_t));
    int result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    if (result != 0 && errno == ERANGE) {  // `size` is now the required size
        groups.resize(size / sizeof(std::uint32_t));
        result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    }
    if (result != 0) return std::nullopt;
    groups.resize(size / sizeof(std::uint32_t));
    return groups;
}

std::optional<Peer> unix_peer(int fd) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
    auto groups = peer_groups(fd);
    if (!groups) return std::nullopt;
    return UnixPeer{credentials.uid, credentials.gid, credentials.pid, std::move(*groups)};
}

// A client is one peer, whether it connects from ::ffff:a.b.c.d or a.b.c.d.
std::string ip_text(IpAddress const& address) {
    IpAddress v4;
    std::copy_n(address.octets.begin() + 12, 4, v4.octets.begin());
    return to_string(v4.gid() == address.octets ? v4 : address);
}

std::string own_address(int fd) {
    SocketAddress own;
    auto* const room = own.room();
    if (::getsockname(fd, room, &own.length) != 0) return {};
    auto const address = own.address();
    return address ? ip_text(*address) : std::string();
}

PeerState state_of(int fd, int events) {
    pollfd now{.fd = fd, .events = static_cast<short>(events), .revents = 0};
    ::poll(&now, 1, 0);
    if ((now.revents & ~POLLIN) != 0) return PeerState::gone;
    return now.revents == 0 ? PeerState::quiet : PeerState::sent_more;
}

}  // namespace

Result<ListeningSocket> open_listening(Listen const& where) {
    return std::visit([](auto const& one) { return listen_at(one); }, where);
}

int family_of(int fd) {
    int const family = socket_option(fd, SO_DOMAIN);
    return family < 0 ? AF_UNSPEC : family;
}

PeerState peer_state(int fd) {
    return state_of(fd, family_of(fd) == AF_VSOCK ? POLLIN | POLLRDHUP : POLLIN);
}

PeerState reader_state(int fd) {
    return state_of(fd, POLLIN | POLLRDHUP);
}

std::optional<Peer> peer_of(int fd) {
    SocketAddress peer;
    auto* const room = peer.room();
    if (::getpeername(fd, room, &peer.length) != 0) return std::nullopt;
    switch (peer.storage.ss_family) {
        case AF_UNIX:
            return unix_peer(fd);
        case AF_INET:
        case AF_INET6:
            return TcpPeer{ip_text(*peer.address()), {}, own_address(fd)};
        case AF_VSOCK: {
            sockaddr_vm address{};
            std::memcpy(&address, &peer.storage, sizeof address);
            return VsockPeer{address.svm_cid, address.svm_port};
        }
        default:
            return std::nullopt;
    }
}

std::string peer_key(Peer const& peer) {
    if (auto const* local = std::get_if<UnixPeer>(&peer)) return fmt::format("uid:{}", local->uid);
    if (auto const* guest = std::get_if<VsockPeer>(&peer)) return fmt::format("cid:{}", guest->cid);
    return std::get<TcpPeer>(peer).address;
}

std::string stranger_key(Peer const& peer) {
    constexpr std::uint8_t host_bits_begin = 64;
    auto const address = IpAddress::parse(peer_key(peer));
    if (!address || address->family == IpAddress::Family::v4) return peer_key(peer);
    return to_string(network_of(*address, host_bits_begin));
}

}  // namespace vfmgr::http
