// SPDX-License-Identifier: Apache-2.0
// Sends the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/types/addresses.hpp"
#include "guest-tools/traffic/messages.hpp"

namespace vfmgr::stream {

class Sender {
  public:
    struct Options {
        Over over = Over::udp;
        IpAddress local, to;
        std::optional<std::uint32_t> packet_bytes;  // absent: the longest that usually fits
        std::uint32_t chunk = 1;
        std::uint64_t run = 0;
    };
    // Fails where the packets don't fit the path's MTU, as far as it is known here: they are never
    // fragmented.
    [[nodiscard]] static Result<std::unique_ptr<Sender>> open(Options const& options);
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

}  // namespace vfmgr::stream
