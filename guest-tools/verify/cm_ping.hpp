// SPDX-License-Identifier: Apache-2.0
// What rping and every program with -R do first: a connection set up by RDMA CM, which chooses
// device and GID by itself, and pings over it that the host writes back. One thread.
#pragma once

#include <functional>

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

struct CmWish {
    PortWish own;  // the VF's address and netdev: no other device may be tested
    IpAddress host;
    std::uint16_t cm_port = 0;  // the host's, of the stream's offer
    std::uint32_t message_bytes = 64;
    std::uint64_t pings = 10;
};

// The pings, until the deadline. Who runs the session gives it (stock::cm_pinger()): RDMA CM needs
// a process of its own, a program that the session does not know.
using CmPinger = std::function<Measured(CmWish const&, Deadline)>;

// Opens the stream, has it pinged, closes it. Figures: connect_us, the round trip as of
// latency.hpp, and sent. A skip where the host can't serve it: nothing is wrong with the VF then.
[[nodiscard]] Measured cm_ping(CmPinger const& pinger, StreamHost const& host, CmWish wish,
                               Deadline deadline);

}  // namespace vfmgr::verify
