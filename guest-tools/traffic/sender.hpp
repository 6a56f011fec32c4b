// SPDX-License-Identifier: Apache-2.0
// Sends the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"
#include "guest-tools/traffic/messages.hpp"
#include "guest-tools/traffic/ring.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::stream {

// The sender's end of a stream over a UDP socket. Never fragmented. One thread.

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

// The sender's end of a stream over unreliable datagrams: a chunk is one chain of requests, of
// which only the last has a completion. One thread.

class UdSender {
  public:
    struct Options {
        IpAddress local;
        std::optional<std::uint32_t> packet_bytes;  // absent: what fits a datagram
        std::uint32_t chunk = 1;
        std::uint64_t run = 0;
    };
    [[nodiscard]] static Result<UdSender> open(Options const& options);
    UdSender(UdSender&&) = default;
    UdSender& operator=(UdSender&&) = delete;
    ~UdSender();

    [[nodiscard]] QueuePairEnd const& end() const { return rdma_->pair.end(); }
    [[nodiscard]] std::uint32_t packet_bytes() const { return packet_bytes_; }
    [[nodiscard]] Result<void> aim(QueuePairEnd const& receiver);
    // Sends `count` packets from number `first` on; at most a chunk.
    [[nodiscard]] Result<void> send(std::uint64_t first, std::uint64_t count);
    // Waits until all are on their way.
    [[nodiscard]] Result<void> flush();

  private:
    struct Rdma {  // members are destroyed from the last to the first
        verify::Endpoint endpoint;
        verify::RegisteredMemory memory;
        verify::QueuePair pair;
    };
    UdSender(std::unique_ptr<Rdma> rdma, Ring slots, std::uint32_t packet_bytes,
             Options const& options);
    [[nodiscard]] Result<void> await_chunk();

    std::unique_ptr<Rdma> rdma_;
    Ring slots_;  // for several chunks
    std::uint32_t packet_bytes_;
    std::uint32_t chunk_;
    std::uint64_t run_;
    std::uint64_t next_chunk_ = 0;
    std::uint64_t outstanding_ = 0;  // chunks
    std::vector<ibv_send_wr> requests_;
    std::vector<ibv_sge> sges_;
    std::array<ibv_wc, 16> room_{};
};

// The destination of a sender's packets, by either transport. One thread.

class Sender {
  public:
    struct Options {
        Over over = Over::udp;
        IpAddress local, to;
        std::optional<std::uint32_t> packet_bytes;  // absent: the longest that usually fits
        std::uint32_t chunk = 1;
        std::uint64_t run = 0;
    };
    [[nodiscard]] static Result<Sender> open(Options const& options);
    [[nodiscard]] std::uint32_t packet_bytes() const { return packet_bytes_; }
    // With ud: what the receiver needs to know.
    [[nodiscard]] std::optional<QueuePairEnd> end() const;
    [[nodiscard]] Result<void> aim(Acceptance const& receiver);
    [[nodiscard]] Result<void> send(std::uint64_t first, std::uint64_t count);
    // Waits until all are on their way.
    [[nodiscard]] Result<void> flush();
    // Sent packets that a packet filter here refused.
    [[nodiscard]] std::uint64_t filtered() const;

  private:
    using Either = std::variant<UdpSender, UdSender>;
    Sender(Either either, std::uint32_t packet_bytes)
        : either_(std::move(either)), packet_bytes_(packet_bytes) {}

    Either either_;
    std::uint32_t packet_bytes_;
};

}  // namespace vfmgr::stream
