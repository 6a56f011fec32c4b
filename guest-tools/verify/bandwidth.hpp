// SPDX-License-Identifier: Apache-2.0
// The guest's side of RDMA write and read: once over the checked regions, then timed. The timed
// part's figures are data; what the host checks is what arrived. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured rdma_write(Bench& bench);
[[nodiscard]] Measured rdma_read(Bench& bench);

}  // namespace vfmgr::verify
