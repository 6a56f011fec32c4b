// SPDX-License-Identifier: Apache-2.0
// What rping and every program with -R do first: sets up a connection by RDMA CM, which chooses
// device and GID by itself, and sends pings over it that the host writes back. One thread.
#pragma once

#include <functional>

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

struct CmOptions {
    EndpointOptions own;  // the VF's address and netdev: no other device may be tested
    IpAddress host;
    std::uint16_t cm_port = 0;  // the host's, from the stream's offer
    std::uint32_t message_bytes = 64;
    std::uint64_t pings = 10;
};

// Runs the pings, until the deadline. The session's caller supplies it (interop::cm_pinger()): RDMA
// CM needs a process of its own, and the session does not know that program.
using CmPinger = std::function<Measured(CmOptions const&, Deadline)>;

// Opens the stream, runs the pinger, closes the stream. Figures: connect_us, the round trip as in
// latency.hpp, and sent. Skipped where the host can't serve it: the VF is not at fault then.
[[nodiscard]] Measured cm_ping(CmPinger const& pinger, StreamHost const& host, CmOptions options,
                               Deadline deadline);

}  // namespace vfmgr::verify
