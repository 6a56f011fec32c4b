// SPDX-License-Identifier: Apache-2.0
// The kernels vfmgr_fill and vfmgr_check as PTX, which NVIDIA's driver compiles for its GPU: the
// content of payload.ptx. A constant; any thread.
#pragma once

#include <vector>

#include "guest-tools/gpu/cuda.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::guest::gpu {

extern char const* const payload_ptx;

// The payload of vfmgr/proof/random_payload.hpp, generated and checked on the GPU, in place: what a
// NIC wrote is checked without a copy through the host. NVIDIA's driver compiles the kernels. Owned
// by the test; the thread of the context, which outlives it.

// What the GPU found.
struct GpuCheck {
    std::uint64_t chunks = 0;  // checked
    std::uint64_t chunks_wrong = 0;
    std::uint64_t bytes_wrong = 0;
    std::vector<std::uint64_t> wrong;  // chunks: the lowest, and some more, sorted
    std::string detail;                // about the lowest, as verify::check() puts it; empty: none
};

// Where a buffer begins in the payload, in chunks, and how many chunks it has.
struct Chunks {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

class GpuPayload {
  public:
    [[nodiscard]] static Result<GpuPayload> load(GpuContext const& context);

    // Both start at the beginning of the memory and wait for the GPU.
    [[nodiscard]] Result<void> fill(verify::Payload const& payload, GpuBuffer const& memory,
                                    Chunks chunks) const;
    [[nodiscard]] Result<GpuCheck> check(verify::Payload const& payload, GpuBuffer const& memory,
                                         Chunks chunks) const;
    // These only start the kernels, for measurements.
    [[nodiscard]] Result<void> start_fill(verify::Payload const& payload, GpuBuffer const& memory,
                                          Chunks chunks) const;
    [[nodiscard]] Result<void> start_check(verify::Payload const& payload, GpuBuffer const& memory,
                                           Chunks chunks) const;
    // Only loads the bytes: a check can't be faster than that.
    [[nodiscard]] Result<void> start_read(GpuBuffer const& memory, Chunks chunks) const;

  private:
    GpuPayload(GpuContext const& context, GpuModule module, GpuBuffer found)
        : context_(&context), module_(std::move(module)), found_(std::move(found)) {}
    [[nodiscard]] Cuda const& cuda() const { return context_->cuda(); }
    [[nodiscard]] unsigned blocks_for(std::uint64_t chunks) const;
    GpuContext const* context_;
    GpuModule module_;
    CudaFunction fill_ = nullptr, check_ = nullptr, read_ = nullptr;
    GpuBuffer found_;
    int processors_ = 1;
};

}  // namespace vfmgr::guest::gpu
