// SPDX-License-Identifier: Apache-2.0
// A short all-reduce over all GPUs that CUDA lists, by NCCL, as programs for several GPUs start
// with: each GPU holds values of its own, and every sum in every GPU is compared with what it must
// be. May hang wherever NCCL or a GPU does, so it runs in a process of its own:
// all_reduce_process.hpp. One thread.
#pragma once

#include <functional>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/nccl_library.hpp"

namespace vfmgr::guest::gpu {

struct AllReduceWish {
    std::uint64_t bytes_max = std::uint64_t{64} << 20U;  // less where memory is short
    std::string library = nccl_library;
};

struct AllReduceEars {
    // Before each step, what it does: "making communicators …". What hangs is the last.
    std::function<void(std::string const&)> on_step;
    // Before anything is given back, since that waits for what still runs on the GPUs.
    std::function<void(TestResult const&)> on_result;
};

// `gpus` are all that CUDA lists, in its order: at least two.
void all_reduce(Cuda const& cuda, std::vector<CudaGpu> const& gpus, AllReduceWish const& wish,
                AllReduceEars const& ears);

}  // namespace vfmgr::guest::gpu
