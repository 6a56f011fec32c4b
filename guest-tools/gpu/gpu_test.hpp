// SPDX-License-Identifier: Apache-2.0
// Proves what can be proved of GPUDirect without another machine: that the GPU's memory can be
// exported and registered with the NICs present, that bytes in it are checked in place and damage
// is found and located, and how fast that is. With several GPUs, also runs an all-reduce over all
// of them. Blocks for seconds; one thread.
#pragma once

#include <functional>

#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

struct GpuTestOptions {
    std::optional<std::uint64_t> bytes;  // of the checked buffer; absent: 1 GiB, or what fits
    unsigned rounds = 200;               // of allocating and freeing
};

using OnGpuTest = std::function<void(TestResult const&)>;

// Does not set started_at and finished_at. Calls `on_test` after each test.
[[nodiscard]] GpuTestReport test_gpu(Cuda const& cuda, CudaGpu const& gpu, GpuInfo const& info,
                                     GpuTestOptions const& options, OnGpuTest const& on_test);

}  // namespace vfmgr::guest::gpu
