// SPDX-License-Identifier: Apache-2.0
// Write latency: 8-byte RDMA writes, one outstanding, from one completion to the next. Each carries
// its number; the host sees that the last one landed. One thread; summarise() is pure.
#pragma once

#include <map>
#include <vector>

#include "guest-tools/verify/bench.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured write_latency(Bench& bench);

// min, p50, p90, p99, p999 and max in microseconds, and how many samples; nothing is left out.
[[nodiscard]] std::map<std::string, double> summarise(std::vector<std::uint64_t> nanoseconds);

}  // namespace vfmgr::verify
