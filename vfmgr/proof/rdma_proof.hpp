// SPDX-License-Identifier: Apache-2.0
// The guest's side of RDMA write and read: every byte of the checked MRs once. The host checks what
// arrived; the duration is data. One thread.
#pragma once

#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::verify {

[[nodiscard]] Result<Measured> rdma_write(Bench& bench);
[[nodiscard]] Result<Measured> rdma_read(Bench& bench);

// The guest's side of the RC ping: seeded sends that the host checks byte by byte, each answered
// with bytes that the guest can't know. One thread.

[[nodiscard]] Result<Measured> rc_ping(Bench& bench);

// Unreliable datagrams that the host answers, with the losses on the way: what ibping can't do on
// RoCE (RDMA.md#datagrams). One thread.

// Sends `load.messages` questions, one after the other, on a stream of kind ud_echo. Figures: the
// round trip as in latency.hpp, and sent and lost. Fails when more than one in twenty is lost.
[[nodiscard]] Result<Measured> ud_ping(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
