// SPDX-License-Identifier: Apache-2.0
// Where a receiver's packets come from, by either transport. One thread.
#pragma once

#include <variant>

#include "guest-tools/stream/ud_source.hpp"
#include "guest-tools/stream/udp_source.hpp"

namespace vfmgr::stream {

class Source {
  public:
    struct Wish {
        IpAddress local;
        std::uint16_t port = 0;  // of UDP; 0: any free one
        RingWish ring{};
        RingMaker const& rings;
    };
    // Whether it can be received there at all, into such memory.
    [[nodiscard]] static Result<void> check(Wish const& wish, Over over);
    // What fails here is told to the sender.
    [[nodiscard]] static Result<Source> open(Wish const& wish, Opening const& opening);
    // What the sender needs to know.
    [[nodiscard]] Acceptance acceptance() const;
    [[nodiscard]] int fd() const;
    // What is there, without waiting; how many. When nothing is, arm() and take() once more, and
    // then fd() can be waited for.
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    [[nodiscard]] Result<void> arm();
    [[nodiscard]] Result<void> check() const;
    // What came to this machine and was lost here; absent where nobody tells.
    [[nodiscard]] std::optional<std::uint64_t> lost();
    [[nodiscard]] std::uint32_t ring_packets() const;
    [[nodiscard]] RingPlace ring_place() const;

  private:
    using Either = std::variant<UdpSource, UdSource>;
    explicit Source(Either either) : either_(std::move(either)) {}

    Either either_;
};

}  // namespace vfmgr::stream
