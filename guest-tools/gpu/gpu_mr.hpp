// SPDX-License-Identifier: Apache-2.0
// GPU memory registered with a NIC, which writes and reads it directly: by DMA-BUF, or by its
// address with nvidia-peermem. The memory outlives the MR. The thread of the context.
#pragma once

#include "guest-tools/gpu/gpu_memory.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::guest::gpu {

// The other end uses the GPU's own address, as CUDA returned it. Fails with kernel_refused or
// unsupported where that way is not available (GPUDIRECT.md#dma-buf, GPUDIRECT.md#nvidia-peermem).
[[nodiscard]] Result<verify::VerbsMr> register_dma_buf(ibv_pd* pd, GpuContext const& context,
                                                       GpuRange range, int access);
[[nodiscard]] Result<verify::VerbsMr> register_peermem(ibv_pd* pd, GpuRange range, int access);

}  // namespace vfmgr::guest::gpu
