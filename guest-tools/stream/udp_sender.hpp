// SPDX-License-Identifier: Apache-2.0
// The sender's end of a stream over a UDP socket. Never fragmented. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/ip_address.hpp"
#include "guest-tools/stream/messages.hpp"

namespace vfmgr::stream {

class UdpSender {
  public:
    struct Options {
        IpAddress local, to;
        std::uint32_t packet_bytes = 0;
        std::uint32_t chunk = 1;
        std::uint64_t run = 0;
    };
    // Fails where the packets don't fit the path's MTU, as far as it is known here.
    [[nodiscard]] static Result<UdpSender> open(Options const& options);
    [[nodiscard]] Result<void> aim(std::uint16_t port);
    // Sends `count` packets from number `first` on; at most a chunk.
    [[nodiscard]] Result<void> send(std::uint64_t first, std::uint64_t count);
    // Packets that a packet filter of this machine refused.
    [[nodiscard]] std::uint64_t filtered() const { return filtered_; }

  private:
    UdpSender(FileDescriptor socket, Options const& options);
    [[nodiscard]] std::span<std::byte> packet(std::uint64_t index);
    [[nodiscard]] Error refused(int error_number) const;
    [[nodiscard]] Result<void> await_room() const;

    FileDescriptor socket_;
    Options options_;
    std::uint64_t filtered_ = 0;
    std::vector<std::byte> memory_;  // for one chunk
    std::vector<iovec> sges_;
    std::vector<mmsghdr> messages_;
};

}  // namespace vfmgr::stream
