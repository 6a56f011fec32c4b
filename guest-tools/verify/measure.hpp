// SPDX-License-Identifier: Apache-2.0
// Tests that give figures: bandwidth and latency as perftest measures them, each on a stream of its
// own. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

struct Measurement {
    char const* name;
    StreamKind kind;
    // Null: those without such a stream (cm_ping.hpp, transfer.hpp, gpu/gpu_transfer.hpp).
    Measured (*run)(GuestStream&, Load const&, Deadline);
    Load load;
    Profile since = Profile::default_;  // the smallest profile that includes it
};

// All measurements, with their load in the default profile.
[[nodiscard]] std::vector<Measurement> all_measurements();
// Null if none has that name.
[[nodiscard]] Measurement const* find_measurement(std::vector<Measurement> const& among,
                                                  std::string_view name);
// The measurements of a profile: none in quick.
[[nodiscard]] std::vector<Measurement> measurements_of(Profile profile);

// For all but cm_ping and gpudirect: opens the stream, measures, closes it. Reports errors in the
// result; if the host is busy with another VM's stream, the test is skipped.
[[nodiscard]] Measured measure(Measurement const& what, StreamHost const& host,
                               Endpoint const& endpoint, Deadline deadline);

}  // namespace vfmgr::verify
