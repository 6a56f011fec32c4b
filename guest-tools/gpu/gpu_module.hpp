// SPDX-License-Identifier: Apache-2.0
// The kernels of payload.ptx, compiled by NVIDIA's driver for its GPU in the current context, which
// outlives them. One thread, that of the context.
#pragma once

#include <utility>

#include "guest-tools/gpu/cuda.hpp"

namespace vfmgr::guest::gpu {

class GpuModule {
  public:
    [[nodiscard]] static Result<GpuModule> load(Cuda const& cuda);
    GpuModule(GpuModule&& other) noexcept
        : cuda_(other.cuda_), module_(std::exchange(other.module_, nullptr)) {}
    GpuModule& operator=(GpuModule&&) = delete;
    ~GpuModule();

    [[nodiscard]] Result<CudaFunction> kernel(char const* name) const;

  private:
    GpuModule(Cuda const& cuda, CudaModule module) : cuda_(&cuda), module_(module) {}
    Cuda const* cuda_;
    CudaModule module_;
};

}  // namespace vfmgr::guest::gpu
