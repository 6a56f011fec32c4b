// SPDX-License-Identifier: Apache-2.0
// How much memory can be registered in this VM, in one region and in how many: what MPI and NCCL
// need long before they say why they failed. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/guest_stream.hpp"

namespace vfmgr::verify {

// Regions twice as long each time, into whose last bytes the host's are read over RDMA. At most
// half of the memory that is free, and 256 MiB. Fails below 64 MiB where that much is free.
[[nodiscard]] Measured memory_regions(GuestStream& stream, Load const& load, Deadline deadline);

}  // namespace vfmgr::verify
