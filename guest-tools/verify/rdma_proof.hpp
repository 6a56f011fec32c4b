// SPDX-License-Identifier: Apache-2.0
// The guest's side of RDMA write and read: every byte of the checked MRs once. The host checks what
// arrived; the duration is data. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured rdma_write(Bench& bench);
[[nodiscard]] Measured rdma_read(Bench& bench);

}  // namespace vfmgr::verify
