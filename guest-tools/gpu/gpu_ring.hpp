// SPDX-License-Identifier: Apache-2.0
// The ring of a stream's receiver in a GPU's memory. A NIC writes to it directly, or packets of a
// socket are copied into it; the GPU reads their numbers. One thread, that of the GPU's context.
#pragma once

#include <memory>

#include "guest-tools/gpu/cuda.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/traffic/ring.hpp"

namespace vfmgr::guest::gpu {

// Makes rings in the memory of one GPU, which it owns.
struct GpuRings {
    // Opens the GPU found.gpus[at].
    [[nodiscard]] static Result<std::unique_ptr<GpuRings>> open(FoundGpus found, std::size_t at);
    // Outlives its rings. With a NIC, registers the memory by DMA-BUF or, if that fails, by
    // nvidia-peermem; the Error covers both.
    [[nodiscard]] Result<std::unique_ptr<stream::RingMemory>> make(
        stream::RingShape const& shape, verify::Endpoint const* endpoint) const;

    FoundGpus found;  // whose library the others use
    CudaGpu gpu;
    GpuContext context;
    GpuModule module;
    CudaFunction packets;  // vfmgr_packets
};

}  // namespace vfmgr::guest::gpu
