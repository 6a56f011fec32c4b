// SPDX-License-Identifier: Apache-2.0
// A TCP connection to a client that may be hostile: whole messages or an Error, never beyond a
// deadline. Owned and used by one thread; cut() from any.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/proof/echo.hpp"

namespace vfmgr::interop {

class TcpStream {
  public:
    explicit TcpStream(FileDescriptor socket) : socket_(std::move(socket)) {}
    // Reads exactly `bytes` bytes. Fails with unavailable when the client has gone, or timed_out.
    [[nodiscard]] Result<std::string> read(std::size_t bytes, Deadline deadline);
    [[nodiscard]] Result<void> write(std::string_view bytes, Deadline deadline);
    // Makes reads and writes fail as if the client had gone.
    void cut() const;
    // Makes the close discard all pending data and reset the connection (RST). For every client
    // except those that have closed the connection themselves.
    void end_hard() const;

  private:
    [[nodiscard]] Result<void> wait(short events, Deadline deadline) const;

    FileDescriptor socket_;
};

[[nodiscard]] Result<FileDescriptor> listen_tcp(verify::SocketPlace const& place);
// Returns the port that the listener got.
[[nodiscard]] std::uint16_t port_of(FileDescriptor const& listener);

}  // namespace vfmgr::interop
