// SPDX-License-Identifier: Apache-2.0
// GPU memory that a NIC writes and reads: the host's transfers (guest-tools/verify/transfer.hpp) by
// each of the ways there are, checked on the GPU. One thread, of the GPU's context.
#pragma once

#include "guest-tools/gpu/find_gpus.hpp"
#include "guest-tools/gpu/gpu_payload.hpp"
#include "guest-tools/verify/transfer.hpp"

namespace vfmgr::guest::gpu {

enum class Route {
    dma_buf,      // ibv_reg_dmabuf_mr of the GPU's memory
    dma_buf_vmm,  // and of its virtual memory, cuMemCreate and cuMemMap
    peermem,      // ibv_reg_mr of it, with nvidia-peermem or its older kin
    staged,       // none of it: main memory, copied
};

struct OpenGpu {
    CudaGpu const& gpu;
    GpuContext const& context;
    GpuPayload const& kernels;
};
// What of `gpu` outlives the target; `bytes` are whole chunks. kernel_refused and unsupported where
// that way is not there.
[[nodiscard]] Result<std::unique_ptr<verify::TransferTarget>> gpu_target(Route route,
                                                                         ibv_pd* domain,
                                                                         OpenGpu const& gpu,
                                                                         std::uint64_t bytes);

// The test "gpudirect", of the GPU that choose_gpu() takes: each route's transfers, what is
// recommended, and why the others are not there. not_applicable without a GPU, or with one whose
// driver offers no GPUDirect; then the staged rate is measured all the same.
[[nodiscard]] verify::Measured gpudirect(verify::StreamHost const& host,
                                         verify::VerbsPort const& port,
                                         std::chrono::milliseconds window, Deadline deadline);

}  // namespace vfmgr::guest::gpu

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::guest::gpu::Route>, 4>
    vfmgr::enum_names<vfmgr::guest::gpu::Route> = {
        {{vfmgr::guest::gpu::Route::dma_buf, "dma_buf"},
         {vfmgr::guest::gpu::Route::dma_buf_vmm, "dma_buf_vmm"},
         {vfmgr::guest::gpu::Route::peermem, "peermem"},
         {vfmgr::guest::gpu::Route::staged, "staged"}}};
