// SPDX-License-Identifier: Apache-2.0
// The receiver of a stream test: waits for one sender, counts what comes, tells it each second.
// Blocks; one thread.
#pragma once

#include <chrono>
#include <functional>

#include "guest-tools/stream/ring_memory.hpp"

namespace vfmgr::stream {

struct ReceiveWish {
    IpAddress local;
    std::uint16_t port = default_port;  // of TCP, and of UDP; 0: any free ones
    std::optional<Over> over{};         // absent: as the sender wants it
    RingWish ring{};
    RingMaker const* rings = nullptr;                 // what the ring is made of; null: main memory
    std::optional<std::chrono::milliseconds> time{};  // then it ends, whatever has come
};

// Each of them may be empty.
struct ReceiveEvents {
    std::function<void(std::uint16_t port)> ready;
    std::function<void(Opening const&, IpAddress const& sender, RingPlace const&)> begun;
    std::function<void(Error const&)> refused;    // one that came; the next is waited for
    std::function<void(Interval const&)> second;  // and what is left at the end
};

// What is on its way when the sender has ended is waited for: so long after the last packet.
inline constexpr std::chrono::milliseconds quiet_time{500};

// An Error when no stream began or this end failed; a Summary, whatever was lost, when one has
// begun. `stop` ends it when it can be read; -1: none.
[[nodiscard]] Result<Summary> receive(ReceiveWish const& wish, ReceiveEvents const& events,
                                      int stop);

}  // namespace vfmgr::stream
