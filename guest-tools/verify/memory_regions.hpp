// SPDX-License-Identifier: Apache-2.0
// How much memory can be registered in this VM: the largest MR, and the number of MRs of 4 KiB at
// once, up to 256. MPI and NCCL depend on it, and explain such failures late. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

// Doubles the MR from 1 MiB on, and reads the host's message into its end over RDMA. At most half
// of the available memory (MemAvailable), and 256 MiB. Fails when one of these sizes does not work
// and the largest that does is below 64 MiB.
[[nodiscard]] Measured memory_regions(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
