// SPDX-License-Identifier: Apache-2.0
// GPU memory that a NIC writes and reads: the host's transfers (guest-tools/verify/transfer.hpp) by
// each of the ways there are, checked on the GPU. One thread, of the GPU's context.
#pragma once

#include "guest-tools/gpu/find_gpus.hpp"
#include "guest-tools/gpu/gpu_payload.hpp"
#include "guest-tools/verify/route.hpp"
#include "guest-tools/verify/transfer.hpp"

namespace vfmgr::guest::gpu {

using verify::Route;

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
