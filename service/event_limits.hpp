// SPDX-License-Identifier: Apache-2.0
// What the streams of events may take. Values.
#pragma once

#include <chrono>
#include <cstddef>

namespace vfmgr {

// How many of the latest events are in memory, and so how far a reader may fall behind.
struct RecentLimits {
    std::size_t events = 4096;
    std::size_t bytes = 8 << 20;  // of their frames
    bool operator==(RecentLimits const&) const = default;
};

struct EventStreamLimits {
    // All principals share them. When all are taken, a principal with fewer streams than another
    // gets the place of one of the other's.
    std::size_t streams_max = 1024;
    std::size_t streams_per_peer_max = 128;  // by the principal's name
    RecentLimits recent{};
    std::chrono::milliseconds heartbeat{15'000};
    bool operator==(EventStreamLimits const&) const = default;
};

}  // namespace vfmgr
