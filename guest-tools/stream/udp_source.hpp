// SPDX-License-Identifier: Apache-2.0
// The receiver's end of a stream over a UDP socket. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <vector>

#include "api/types/file_descriptor.hpp"
#include "api/types/ip_address.hpp"
#include "guest-tools/stream/ring.hpp"
#include "guest-tools/stream/tally.hpp"

namespace vfmgr::stream {

class UdpSource {
  public:
    struct Wish {
        IpAddress local;
        std::uint16_t port = 0;  // 0: any free one
        std::uint32_t packet_bytes = 0;
        std::uint32_t packets = 1;  // of the ring
    };
    [[nodiscard]] static Result<UdpSource> open(Wish const& wish);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::uint32_t ring_packets() const { return ring_.count(); }
    // What is there, up to a batch; how many.
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    // What came to this socket and found its buffer full, or was damaged.
    // Asked at least once in 2^32 of them, which is where the kernel's count begins again.
    [[nodiscard]] std::optional<std::uint64_t> lost();

  private:
    UdpSource(FileDescriptor socket, Wish const& wish);

    FileDescriptor socket_;
    std::vector<std::byte> memory_;
    Ring ring_;
    std::uint64_t next_ = 0;  // slot
    std::uint64_t lost_ = 0;
    std::uint32_t drops_ = 0;  // the kernel's count when it was asked
    std::vector<iovec> pieces_;
    std::vector<mmsghdr> messages_;
};

}  // namespace vfmgr::stream
