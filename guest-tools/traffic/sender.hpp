// SPDX-License-Identifier: Apache-2.0
// Sends the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "api/types/addresses.hpp"
#include "guest-tools/traffic/messages.hpp"

namespace vfmgr::stream {

struct SendOptions {
    IpAddress to;
    std::uint16_t port = default_port;
    std::optional<IpAddress> local{};  // absent: the kernel chooses
    Over over = Over::udp;
    // Absent: over udp what fits an MTU of 1500, over ud what fits a datagram.
    std::optional<std::uint32_t> packet_bytes{};
    std::uint32_t chunk = 16;
    std::uint64_t bits_per_second = 100'000'000;        // of packets, without headers
    std::optional<std::uint64_t> packets_per_second{};  // instead of bits_per_second
    std::chrono::milliseconds time{10'000};
    std::optional<std::uint64_t> packets{};  // instead of time
};

class Sender {
  public:
    // `local` is the address that the receiver knows. Fails where the packets don't fit the path's
    // MTU, as far as it is known here: they are never fragmented.
    [[nodiscard]] static Result<std::unique_ptr<Sender>> open(SendOptions options,
                                                              IpAddress const& local,
                                                              std::uint64_t run);
    virtual ~Sender() = default;
    [[nodiscard]] std::uint32_t packet_bytes() const { return packet_bytes_; }
    // With ud: what the receiver needs to know.
    [[nodiscard]] virtual std::optional<QueuePairEnd> end() const { return std::nullopt; }
    [[nodiscard]] virtual Result<void> aim(Acceptance const& receiver) = 0;
    // Sends `count` packets from number `first` on; at most a chunk.
    [[nodiscard]] virtual Result<void> send(std::uint64_t first, std::uint64_t count) = 0;
    // Waits until all are on their way.
    [[nodiscard]] virtual Result<void> flush() { return {}; }
    // Sent packets that a packet filter here refused.
    [[nodiscard]] virtual std::uint64_t filtered() const { return 0; }

  protected:
    explicit Sender(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  private:
    std::uint32_t packet_bytes_;
};

// The sender of a stream test: sends chunks of packets, each when it is due by the clock. Blocks;
// one thread.

// Returns an Error when no stream began or the receiver's counts did not arrive; else those counts.
// Calls `begun` with the accepted opening. `stop` ends the sending when it is readable, and the
// counts are still exact; -1: none.
[[nodiscard]] Result<Summary> send(SendOptions const& options,
                                   std::function<void(Opening const&)> const& begun, int stop);

}  // namespace vfmgr::stream
