// SPDX-License-Identifier: Apache-2.0
// The terms on which the host serves one guest's interop clients. Made by the host from its own
// state. Values.
#pragma once

#include <algorithm>
#include <chrono>

#include "api/types/interop.hpp"
#include "api/types/time.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::interop {

struct Terms {
    verify::SessionPermit permit;  // the clients, and the host's address; without run and nonce
    InteropRequest request;
    Deadline until;
    std::uint16_t tcp_port = perftest_port;  // 0: any free one
    std::uint16_t cm_port = rping_port;      // likewise
};

inline constexpr std::chrono::seconds handshake_time{5};    // in total
inline constexpr std::chrono::milliseconds port_time{500};  // to find the interface's RDMA port
inline constexpr std::size_t conversations_max = 16;        // per guest, handshakes included
inline constexpr std::size_t tests_max = 8;                 // of those, in their test
inline constexpr std::uint64_t conversation_bytes_max = 16 << 20;  // memory of one client

struct Served {
    std::uint64_t served = 0;   // clients whose test began
    std::uint64_t refused = 0;  // clients whose test did not begin
    std::uint64_t pings = 0;    // rping's, written back
};

// The time left until `until`, at least one second.
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

}  // namespace vfmgr::interop
