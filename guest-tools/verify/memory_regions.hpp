// SPDX-License-Identifier: Apache-2.0
// How much memory can be registered in this VM, in one MR and in how many: MPI and NCCL depend on
// it, and explain such failures late. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

// Doubles the MR each time, and reads the host's bytes into its end over RDMA. At most half of the
// free memory, and 256 MiB. Fails below 64 MiB where that much is free.
[[nodiscard]] Measured memory_regions(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
