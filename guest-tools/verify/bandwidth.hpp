// SPDX-License-Identifier: Apache-2.0
// Bandwidth as perftest measures it: `depth` messages outstanding on each queue pair, from the
// first post to the last completion. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured write_bandwidth(GuestStream& stream, Load const& load, Deadline deadline);
[[nodiscard]] Measured read_bandwidth(GuestStream& stream, Load const& load, Deadline deadline);
[[nodiscard]] Measured send_bandwidth(GuestStream& stream, Load const& load, Deadline deadline);
// Half of the queue pairs write while the other half read. Their number is even.
[[nodiscard]] Measured bidirectional_bandwidth(GuestStream& stream, Load const& load,
                                               Deadline deadline);

}  // namespace vfmgr::verify
