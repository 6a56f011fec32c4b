// SPDX-License-Identifier: Apache-2.0
// GPU memory registered with a NIC, which writes and reads it itself: by DMA-BUF, or by its address
// with nvidia-peermem. The memory outlives the region. The thread of the context.
#pragma once

#include "guest-tools/gpu/gpu_memory.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::guest::gpu {

// For the other end its address is the GPU's own, as CUDA gave it. kernel_refused and unsupported
// where that way is not there (verification.md, 4.2 and 4.3).
[[nodiscard]] Result<verify::VerbsRegion> register_dma_buf(ibv_pd* domain,
                                                           GpuContext const& context,
                                                           GpuRange range, int access);
[[nodiscard]] Result<verify::VerbsRegion> register_peermem(ibv_pd* domain, GpuRange range,
                                                           int access);

}  // namespace vfmgr::guest::gpu
