// SPDX-License-Identifier: Apache-2.0
// What the guest's tests share: the queue pair to the host, the offer, and the form of a failure.
// One thread: the session's.
#pragma once

#include <string>

#include "guest-tools/verify/memory.hpp"
#include "guest-tools/verify/permit.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::verify {

struct Bench {
    ibv_pd* pd = nullptr;
    QueuePair& pair;
    SessionOffer const& offer;
    std::string nonce;
    Deadline deadline;
};

// A test's result as the guest measured it. The digest covers what the host sent; empty when
// nothing arrived.
struct Measured {
    TestResult result;
    std::string digest{};
};

[[nodiscard]] Measured measured(char const* name);
[[nodiscard]] Measured measured_failure(char const* name, Error const& error);

// CLOCK_MONOTONIC_RAW: not slewed during a measurement.
[[nodiscard]] std::uint64_t raw_nanoseconds();

// bandwidth_mbps in 10^6 bit/s, bandwidth_mib_per_s in 2^20 bytes/s, and the time itself.
[[nodiscard]] std::map<std::string, double> rate_figures(std::uint64_t bytes, double seconds);

// Waits for completions and takes them. Returns the first bad one as an Error that names `what`.
[[nodiscard]] Result<std::span<ibv_wc>> await(CompletionQueue& queue, std::span<ibv_wc> room,
                                              Deadline deadline, std::string_view what,
                                              unsigned polls = polls_by_default);
[[nodiscard]] Result<std::span<ibv_wc>> await(Bench& bench, std::span<ibv_wc> room,
                                              std::string_view what);

}  // namespace vfmgr::verify
