// SPDX-License-Identifier: Apache-2.0
// Connects a stream socket within a deadline. Uses plain sockets, no Asio. Blocks; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/time.hpp"

namespace vfmgr::http {

// Returns a non-blocking, close-on-exec socket. Errors: unavailable, timed_out, forbidden (the
// socket's permissions).
[[nodiscard]] Result<FileDescriptor> connect_to(Target const& target, Deadline deadline);

// The steps of connect_to(), for who must not block. Addresses of a host, in the order to try them.
struct Resolved {
    int error = 0;  // of getaddrinfo()
    std::vector<SocketAddress> addresses{};
};
// Absent: the host is a name.
[[nodiscard]] std::optional<SocketAddress> numeric_address(TlsTarget const& target);
// Blocks for as long as the name servers do.
[[nodiscard]] Resolved resolve(std::string const& host, std::string const& port);
[[nodiscard]] Error has_no_address(TlsTarget const& target, int error);
// Returns a socket that connects, or has connected: connected() says so once it is writable.
[[nodiscard]] Result<FileDescriptor> begin_to_connect(SocketAddress const& address,
                                                      TlsTarget const& target);
[[nodiscard]] Result<void> connected(int fd, Target const& target);
[[nodiscard]] Error not_accepted_in_time(Target const& target);

// Returns "/run/vfmgr/vfmgr.sock", "https://host:8470" or "vsock 2:8471", for an error's detail.
[[nodiscard]] std::string describe(Target const& target);
[[nodiscard]] std::string remedy_of(Target const& target);
// Returns the Host header.
[[nodiscard]] std::string authority(Target const& target);

}  // namespace vfmgr::http
