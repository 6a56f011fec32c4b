// SPDX-License-Identifier: Apache-2.0
// Limits the resources that interop clients take from this host while they test: queue pairs,
// spinning threads and descriptors, for each attachment and in total. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/types/problem.hpp"
#include "api/types/rdma.hpp"
#include "api/types/time.hpp"
#include "vfmgr/proof/permit.hpp"

namespace vfmgr::interop {

struct Taken {
    std::size_t pairs = 0;
    std::size_t spinning = 0;     // threads that poll without sleeping
    std::size_t descriptors = 0;  // in this process
};

struct ShareLimits {
    Taken each{64, 8, 256};  // per attachment
    Taken all{128, 16, 512};
};

// A client's connection takes one descriptor. Each queue pair takes three more: two for the device
// and one for the completion channel.
inline constexpr Taken taken_by_client{0, 0, 1};
[[nodiscard]] constexpr Taken taken_by_pair(InteropTest test) {
    bool const spins = test == InteropTest::send_echo || test == InteropTest::write_echo;
    return {1, spins ? 1U : 0U, 3};
}

class Shares {
  public:
    explicit Shares(ShareLimits limits = {}) : limits_(limits) {}
    Shares(Shares const&) = delete;
    Shares& operator=(Shares const&) = delete;

    struct ReturnPart {
        std::string attachment;
        Taken taken;
        void operator()(Shares* owner) const { owner->free(attachment, taken); }
    };
    // Returns its part on destruction.
    using Share = std::unique_ptr<Shares, ReturnPart>;
    // Fails with limit_exceeded and names the resource that has run out.
    [[nodiscard]] Result<Share> take(std::string const& attachment, Taken const& expected);

    [[nodiscard]] Taken taken() const;

  private:
    void free(std::string const& attachment, Taken const& taken);

    ShareLimits const limits_;
    mutable std::mutex mutex_;  // guards what follows
    Taken all_;
    std::map<std::string, Taken> each_;  // by attachment
};

// The terms on which the host serves one guest's interop clients. Made by the host from its own
// state. Values.

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
