// SPDX-License-Identifier: Apache-2.0
// What the guest's tests share: the queue pair to the host, the offer, and how a failure is told.
// One thread: the session's.
#pragma once

#include <string>

#include "guest-tools/verify/memory.hpp"
#include "guest-tools/verify/permit.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::verify {

struct Bench {
    ibv_pd* domain = nullptr;
    QueuePair& pair;
    SessionOffer const& offer;
    std::string nonce;
    Deadline deadline;
};

// A test as the guest saw it. The digest is of what the host sent; empty when nothing came.
struct Measured {
    TestResult result;
    std::string digest{};
};

[[nodiscard]] Measured measured(char const* name);
[[nodiscard]] Measured measured_failure(char const* name, Error const& error);

// CLOCK_MONOTONIC_RAW: not slewed while we measure.
[[nodiscard]] std::uint64_t raw_nanoseconds();

// bandwidth_mbps is 10^6 bit/s, bandwidth_mib_per_s 2^20 bytes/s; and the time itself.
[[nodiscard]] std::map<std::string, double> rate_figures(std::uint64_t bytes, double seconds);

// Waits for completions and takes them; the first bad one as an Error that names `what`.
[[nodiscard]] Result<std::span<ibv_wc>> await(CompletionQueue& queue, std::span<ibv_wc> room,
                                              Deadline deadline, std::string_view what,
                                              unsigned polls = polls_by_default);
[[nodiscard]] Result<std::span<ibv_wc>> await(Bench& bench, std::span<ibv_wc> room,
                                              std::string_view what);

}  // namespace vfmgr::verify
