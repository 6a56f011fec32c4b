// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams that the host answers, with the losses on the way: what ibping can't do on
// RoCE (RDMA.md#datagrams). One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

// Sends `load.messages` questions, one after the other, on a stream of kind ud_echo. Figures: the
// round trip as in latency.hpp, and sent and lost. Fails when more than one in twenty is lost.
[[nodiscard]] Measured ud_ping(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
