// SPDX-License-Identifier: Apache-2.0
// The destination of a sender's packets, by either transport. One thread.
#pragma once

#include <variant>

#include "guest-tools/stream/ud_sender.hpp"
#include "guest-tools/stream/udp_sender.hpp"

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
