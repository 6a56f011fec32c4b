// SPDX-License-Identifier: Apache-2.0
// The receiver of a stream test: waits for one sender, counts what arrives, and reports it each
// second. Blocks; one thread.
#pragma once

#include <chrono>
#include <functional>

#include "guest-tools/traffic/ring.hpp"

namespace vfmgr::stream {

struct ReceiveOptions {
    IpAddress local;
    std::uint16_t port = default_port;  // of TCP, and of UDP; 0: any free ones
    std::optional<Over> over{};         // absent: as the sender requests
    RingOptions ring{};
    RingMaker const* rings = nullptr;                 // what the ring is made of; null: main memory
    std::optional<std::chrono::milliseconds> time{};  // ends it, whatever has arrived
};

// Each of them may be empty.
struct ReceiveEvents {
    std::function<void(std::uint16_t port)> ready;
    std::function<void(Opening const&, IpAddress const& sender, RingPlace const&)> begun;
    std::function<void(Error const&)> refused;    // a sender; the next one is awaited
    std::function<void(Interval const&)> second;  // and the rest at the end
};

// How long after the last packet to wait for more on their way when the sender has ended.
inline constexpr std::chrono::milliseconds quiet_time{500};

// Returns an Error when no stream began or this end failed, else a Summary, whatever was lost.
// `stop` ends it when it is readable; -1: none.
[[nodiscard]] Result<Summary> receive(ReceiveOptions const& options, ReceiveEvents const& events,
                                      int stop);

}  // namespace vfmgr::stream
