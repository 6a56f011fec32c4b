// SPDX-License-Identifier: Apache-2.0
// A TCP connection of a client that may be hostile: whole messages or an Error, never beyond a
// deadline. Owned and used by one thread; cut() by any.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/types/file_descriptor.hpp"
#include "api/types/ip_address.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::stock {

class TcpStream {
  public:
    explicit TcpStream(FileDescriptor socket) : socket_(std::move(socket)) {}
    // Exactly so many bytes. unavailable when the client has gone, timed_out.
    [[nodiscard]] Result<std::string> read(std::size_t bytes, Deadline deadline);
    [[nodiscard]] Result<void> write(std::string_view bytes, Deadline deadline);
    // Whoever reads or writes is told that the client has gone.
    void cut() const;
    // When it is closed nothing of it stays in the kernel, and the client is told at once (RST).
    // For all but those that have gone by themselves.
    void end_hard() const;

  private:
    [[nodiscard]] Result<void> wait(short events, Deadline deadline) const;

    FileDescriptor socket_;
};

struct TcpEndpoint {
    IpAddress address;
    std::uint16_t port = 0;  // 0: any free one
    std::string ifname;      // only connections of this netdev; empty: of any
};
[[nodiscard]] Result<FileDescriptor> listen_tcp(TcpEndpoint const& endpoint);
// The port that it got.
[[nodiscard]] std::uint16_t port_of(FileDescriptor const& listener);

}  // namespace vfmgr::stock
