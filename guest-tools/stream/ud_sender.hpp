// SPDX-License-Identifier: Apache-2.0
// The sender's end of a stream over unreliable datagrams: a chunk is one chain of requests, of
// which only the last has a completion. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "guest-tools/stream/ring.hpp"
#include "guest-tools/verify/device.hpp"
#include "guest-tools/verify/memory.hpp"

namespace vfmgr::stream {

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

}  // namespace vfmgr::stream
