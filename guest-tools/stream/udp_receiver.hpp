// SPDX-License-Identifier: Apache-2.0
// The receiver's end of a stream over a UDP socket. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/ip_address.hpp"
#include "guest-tools/stream/ring_memory.hpp"

namespace vfmgr::stream {

class UdpReceiver {
  public:
    struct Options {
        IpAddress local;
        std::uint16_t port = 0;  // 0: any free one
        RingShape ring{};
    };
    [[nodiscard]] static Result<UdpReceiver> open(Options const& options, RingMaker const& rings);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::uint32_t ring_packets() const { return packets_; }
    [[nodiscard]] RingPlace ring_place() const { return memory_->place(); }
    // Takes what is there, up to a batch; returns how many.
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    // Packets that reached this socket and found its buffer full, or were damaged. Call it at least
    // once per 2^32 of them, where the kernel's count wraps.
    [[nodiscard]] std::optional<std::uint64_t> lost();

  private:
    UdpReceiver(FileDescriptor socket, std::unique_ptr<RingMemory> memory, std::uint32_t packets);

    FileDescriptor socket_;
    std::unique_ptr<RingMemory> memory_;
    std::uint32_t packets_;
    std::uint32_t next_ = 0;  // slot
    std::uint64_t lost_ = 0;
    std::uint32_t drops_ = 0;  // the kernel's count at the last call
    std::vector<iovec> sges_;
    std::vector<mmsghdr> messages_;
    std::vector<Arrival> arrived_;
};

}  // namespace vfmgr::stream
