// SPDX-License-Identifier: Apache-2.0
// On which terms one guest's stock clients are served. Made by the host from its own state. Values.
#pragma once

#include "api/types/stock.hpp"
#include "api/types/time.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::stock {

struct Terms {
    verify::SessionPermit permit;  // whose clients, and where the host is; without run and nonce
    StockRequest request;
    Deadline until;
    std::uint16_t tcp_port = perftest_port;  // 0: any free one
    std::uint16_t cm_port = rping_port;
};

inline constexpr std::chrono::seconds handshake_time{5};    // for all of it
inline constexpr std::chrono::milliseconds port_time{500};  // to find the leg's RDMA port
inline constexpr std::size_t conversations_max = 16;        // of one guest, handshakes included
inline constexpr std::size_t tests_max = 8;                 // of them those that test
inline constexpr std::uint64_t conversation_bytes_max = 16 << 20;  // of memory, of one client

}  // namespace vfmgr::stock
