// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams that the host answers: what ibping can't do on RoCE (verification.md, 5.4),
// with what was lost on the way. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

// `load.messages` questions, one after the other; the stream is one of ud_echo. Figures: the round
// trip as of latency.hpp, and sent and lost. Fails when more than one in twenty is lost.
[[nodiscard]] Measured ud_ping(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
