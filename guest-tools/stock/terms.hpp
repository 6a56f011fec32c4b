// SPDX-License-Identifier: Apache-2.0
// On which terms one guest's stock clients are served. Made by the host from its own state. Values.
#pragma once

#include <algorithm>
#include <chrono>

#include "api/types/stock.hpp"
#include "api/types/time.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::stock {

struct Terms {
    verify::SessionPermit permit;  // whose clients, and where the host is; without run and nonce
    StockRequest request;
    Deadline until;
    std::uint16_t tcp_port = perftest_port;  // 0: any free one
    std::uint16_t cm_port = rping_port;      // the same
};

inline constexpr std::chrono::seconds handshake_time{5};    // for all of it
inline constexpr std::chrono::milliseconds port_time{500};  // to find the leg's RDMA port
inline constexpr std::size_t conversations_max = 16;        // of one guest, handshakes included
inline constexpr std::size_t tests_max = 8;                 // of them those that test
inline constexpr std::uint64_t conversation_bytes_max = 16 << 20;  // of memory, of one client

struct Served {
    std::uint64_t served = 0;   // clients that came to their test
    std::uint64_t refused = 0;  // and those that did not
    std::uint64_t pings = 0;    // rping's that were written back
};

// Until `until`; at least one.
[[nodiscard]] inline std::uint32_t seconds_left(Deadline until) {
    auto const left =
        std::chrono::ceil<std::chrono::seconds>(until - std::chrono::steady_clock::now());
    return static_cast<std::uint32_t>(std::max<long>(left.count(), 1));
}

// A stream lasts as long as the terms.
[[nodiscard]] inline verify::ResponderLimits stream_limits(Terms const& terms) {
    verify::ResponderLimits limits;
    limits.stream_seconds_max = seconds_left(terms.until);
    return limits;
}

}  // namespace vfmgr::stock
