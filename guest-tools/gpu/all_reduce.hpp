// SPDX-License-Identifier: Apache-2.0
// Runs a short NCCL all-reduce over all GPUs that CUDA lists, as programs for several GPUs do at
// their start. Each GPU holds values of its own, and every sum in every GPU is compared with its
// expected value. May hang wherever NCCL or a GPU does, so it runs in a process of its own:
// all_reduce_process.hpp. One thread.
#pragma once

#include <functional>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/nccl.hpp"

namespace vfmgr::guest::gpu {

struct AllReduceOptions {
    std::uint64_t bytes_max = std::uint64_t{64} << 20U;  // less where memory is short
    std::string library = nccl_library;
};

struct AllReduceEars {
    // Called before each step with what it does: "making communicators …". The last one hangs.
    std::function<void(std::string const&)> on_step;
    // Called before anything is freed, since freeing waits for what still runs on the GPUs.
    std::function<void(TestResult const&)> on_result;
};

// `gpus` are all GPUs that CUDA lists, in its order: at least two.
void all_reduce(Cuda const& cuda, std::vector<CudaGpu> const& gpus, AllReduceOptions const& options,
                AllReduceEars const& ears);

}  // namespace vfmgr::guest::gpu
