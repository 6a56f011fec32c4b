// SPDX-License-Identifier: Apache-2.0
// Where a sender's packets go, by either transport. One thread.
#pragma once

#include <variant>

#include "guest-tools/stream/ud_sink.hpp"
#include "guest-tools/stream/udp_sink.hpp"

namespace vfmgr::stream {

class Sink {
  public:
    struct Wish {
        Over over = Over::udp;
        IpAddress local, to;
        std::optional<std::uint32_t> packet_bytes;  // absent: the longest that usually fits
        std::uint32_t chunk = 1;
        std::uint64_t run = 0;
    };
    [[nodiscard]] static Result<Sink> open(Wish const& wish);
    [[nodiscard]] std::uint32_t packet_bytes() const { return packet_bytes_; }
    // Of ud: what the receiver needs to know.
    [[nodiscard]] std::optional<QueuePairEnd> end() const;
    [[nodiscard]] Result<void> aim(Acceptance const& receiver);
    [[nodiscard]] Result<void> send(std::uint64_t first, std::uint64_t count);
    // Until all are on their way.
    [[nodiscard]] Result<void> flush();
    // Of what was sent: refused by a packet filter here.
    [[nodiscard]] std::uint64_t filtered() const;

  private:
    using Either = std::variant<UdpSink, UdSink>;
    Sink(Either either, std::uint32_t packet_bytes)
        : either_(std::move(either)), packet_bytes_(packet_bytes) {}

    Either either_;
    std::uint32_t packet_bytes_;
};

}  // namespace vfmgr::stream
