// SPDX-License-Identifier: Apache-2.0
// The source of a receiver's packets, by either transport. One thread.
#pragma once

#include <variant>

#include "guest-tools/stream/ud_receiver.hpp"
#include "guest-tools/stream/udp_receiver.hpp"

namespace vfmgr::stream {

class Receiver {
  public:
    struct Options {
        IpAddress local;
        std::uint16_t port = 0;  // of UDP; 0: any free one
        RingOptions ring{};
        RingMaker const& rings;
    };
    // Checks whether packets can be received there at all, into that memory.
    [[nodiscard]] static Result<void> check(Options const& options, Over over);
    // A failure here is reported to the sender.
    [[nodiscard]] static Result<Receiver> open(Options const& options, Opening const& opening);
    // Returns what the sender needs to know.
    [[nodiscard]] Acceptance acceptance() const;
    [[nodiscard]] int fd() const;
    // Takes what is there, without waiting; returns how many. At none, arm() and take() once more,
    // and then wait for fd().
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    [[nodiscard]] Result<void> arm();
    [[nodiscard]] Result<void> check() const;
    // Packets that reached this machine and were lost here; absent where that is unknown.
    [[nodiscard]] std::optional<std::uint64_t> lost();
    [[nodiscard]] std::uint32_t ring_packets() const;
    [[nodiscard]] RingPlace ring_place() const;

  private:
    using Either = std::variant<UdpReceiver, UdReceiver>;
    explicit Receiver(Either either) : either_(std::move(either)) {}

    Either either_;
};

}  // namespace vfmgr::stream
