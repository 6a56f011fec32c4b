// SPDX-License-Identifier: Apache-2.0
// The ring of a stream's receiver in a GPU's memory. A NIC writes to it directly, or packets of a
// socket are copied into it; the GPU reads their numbers. One thread, that of the GPU's context.
#pragma once

#include "guest-tools/gpu/cuda.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_memory.hpp"
#include "guest-tools/traffic/ring.hpp"

namespace vfmgr::guest::gpu {

class GpuRings final : public stream::RingMaker {
  public:
    // Opens the GPU found.gpus[at].
    [[nodiscard]] static Result<std::unique_ptr<GpuRings>> open(FoundGpus found, std::size_t at);
    [[nodiscard]] CudaGpu const& gpu() const { return gpu_; }
    // With a NIC, registers by DMA-BUF, else by nvidia-peermem; the Error covers both.
    [[nodiscard]] Result<std::unique_ptr<stream::RingMemory>> make(
        stream::RingShape const& shape, verify::Endpoint const* endpoint) const override;

  private:
    GpuRings(FoundGpus found, CudaGpu gpu, GpuContext context, GpuModule module,
             CudaFunction packets)
        : found_(std::move(found)),
          gpu_(std::move(gpu)),
          context_(std::move(context)),
          module_(std::move(module)),
          packets_(packets) {}

    FoundGpus found_;
    CudaGpu gpu_;
    GpuContext context_;
    GpuModule module_;
    CudaFunction packets_;  // vfmgr_packets
};

}  // namespace vfmgr::guest::gpu
