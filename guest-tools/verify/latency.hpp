// SPDX-License-Identifier: Apache-2.0
// Latency as perftest measures it, one message outstanding: half a round trip of writes that are
// answered by writes, or of sends that are answered by sends; a whole RDMA read. One thread;
// summarise() is pure.
#pragma once

#include <map>
#include <vector>

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured write_latency(GuestStream& stream, Load const& load, Deadline deadline);
[[nodiscard]] Measured read_latency(GuestStream& stream, Load const& load, Deadline deadline);
[[nodiscard]] Measured send_latency(GuestStream& stream, Load const& load, Deadline deadline);

// min, p50, p90, p99, p999 and max in microseconds, and the number of samples; no sample is
// dropped.
[[nodiscard]] std::map<std::string, double> summarise(std::vector<std::uint64_t> nanoseconds);

}  // namespace vfmgr::verify
