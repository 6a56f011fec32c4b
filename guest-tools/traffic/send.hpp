// SPDX-License-Identifier: Apache-2.0
// The sender of a stream test: sends chunks of packets, each when it is due by the clock. Blocks;
// one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "guest-tools/traffic/messages.hpp"
#include "guest-tools/traffic/pacer.hpp"

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

// Returns an Error when no stream began or the receiver's counts did not arrive; else those counts.
// Calls `begun`, which may be empty, with the accepted opening. `stop` ends the sending when it is
// readable, and the counts are still exact; -1: none.
[[nodiscard]] Result<Summary> send(SendOptions const& options,
                                   std::function<void(Opening const&)> const& begun, int stop);

}  // namespace vfmgr::stream
