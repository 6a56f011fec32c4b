// SPDX-License-Identifier: Apache-2.0
// GPU memory that a NIC writes and reads: the host's transfers (vfmgr/proof/transfer.hpp) by
// each available route, checked on the GPU. One thread, that of the GPU's context.
#pragma once

#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/transfer.hpp"

namespace vfmgr::guest::gpu {

// Runs the test "gpudirect" on the GPU that choose_gpu() returns: each route's transfers, which
// route is recommended, and why others are not available. not_applicable without a GPU, or if its
// driver offers no GPUDirect; in the latter case the staged rate is still measured.
[[nodiscard]] verify::Measured gpudirect(verify::StreamHost const& host,
                                         verify::Endpoint const& endpoint,
                                         std::chrono::milliseconds window, Deadline deadline);

}  // namespace vfmgr::guest::gpu
