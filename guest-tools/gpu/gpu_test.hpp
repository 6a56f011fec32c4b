// SPDX-License-Identifier: Apache-2.0
// What of GPUDirect can be proved without another machine: that the GPU's memory can be exported
// and registered with the NICs there are, that bytes in it are checked where they lie and damage is
// found and located, and how fast that is; and of all of the machine's GPUs, where there are
// several, an all-reduce. Blocks for seconds; one thread.
#pragma once

#include <functional>

#include "guest-tools/gpu/all_reduce_process.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

struct GpuTestWish {
    std::optional<std::uint64_t> bytes;  // of the checked buffer; absent: 1 GiB, or what fits
    unsigned rounds = 200;               // of taking and giving back
    AllReduceOrder all_reduce{};         // of `bytes` at most
};

using OnGpuTest = std::function<void(TestResult const&)>;

// Without started_at and finished_at. `on_test` is called after each test.
[[nodiscard]] GpuTestReport test_gpu(Cuda const& cuda, CudaGpu const& gpu, GpuInfo const& info,
                                     GpuTestWish const& wish, OnGpuTest const& on_test);

}  // namespace vfmgr::guest::gpu
