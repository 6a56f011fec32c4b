// SPDX-License-Identifier: Apache-2.0
// The receiver of a stream test: waits for one sender, counts what arrives, and reports it each
// second. Blocks; one thread.
#pragma once

#include <chrono>
#include <functional>

#include "guest-tools/traffic/receiver.hpp"

namespace vfmgr::stream {

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
