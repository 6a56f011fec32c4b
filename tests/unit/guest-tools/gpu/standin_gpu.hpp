// SPDX-License-Identifier: Apache-2.0
// The stand-in for libcuda.so.1 (tests/fakes/gpu), opened as one of its personalities. Owned by a
// test; one thread.
#pragma once

#include <stdlib.h>

#include <memory>
#include <string>

#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

inline constexpr std::size_t mebibyte = 1U << 20U;

inline Result<std::unique_ptr<Cuda const>> open_standin(std::string const& personality,
                                                        char const* library = STANDIN_CUDA) {
    ::setenv("VFMGR_STANDIN_GPU", personality.c_str(), 1);
    return Cuda::open(library);
}

struct StandinGpu {
    std::unique_ptr<Cuda const> cuda;
    CudaGpu gpu;

    explicit StandinGpu(std::string const& personality = "h200", char const* library = STANDIN_CUDA)
        : cuda(open_standin(personality, library).value()), gpu(list_gpus(*cuda).value().at(0)) {}
};

}  // namespace vfmgr::guest::gpu
