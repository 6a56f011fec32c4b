// SPDX-License-Identifier: Apache-2.0
// The sender of a stream test: chunks of packets, each when the clock says so. Blocks; one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "guest-tools/stream/messages.hpp"
#include "guest-tools/stream/rate.hpp"

namespace vfmgr::stream {

struct SendWish {
    IpAddress to;
    std::uint16_t port = default_port;
    std::optional<IpAddress> local{};  // absent: the kernel chooses
    Over over = Over::udp;
    // Absent: over udp what fits an MTU of 1500, over ud what fits a datagram.
    std::optional<std::uint32_t> packet_bytes{};
    std::uint32_t chunk = 16;
    std::uint64_t bits_per_second = 100'000'000;        // of packets, without headers
    std::optional<std::uint64_t> packets_per_second{};  // in its place
    std::chrono::milliseconds time{10'000};
    std::optional<std::uint64_t> packets{};  // in its place
};

// An Error when no stream began or the receiver's counts did not come; else what it counted.
// `begun` is told the opening that was accepted, and may be empty. `stop` ends the sending when it
// can be read, and the counts are exact all the same; -1: none.
[[nodiscard]] Result<Summary> send(SendWish const& wish,
                                   std::function<void(Opening const&)> const& begun, int stop);

}  // namespace vfmgr::stream
