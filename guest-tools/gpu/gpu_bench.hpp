// SPDX-License-Identifier: Apache-2.0
// What the tests of a GPU work on, and the results that they return. The thread of the context.
#pragma once

#include "api/types/verification.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_payload.hpp"

namespace vfmgr::guest::gpu {

struct GpuBench {
    GpuContext const& context;
    CudaGpu const& gpu;
    std::uint64_t bytes = 0;  // of the checked buffer, in whole chunks
    unsigned rounds = 0;
};

[[nodiscard]] TestResult passed(std::string detail);
[[nodiscard]] TestResult not_passed(Verdict verdict, Error const& error);
[[nodiscard]] TestResult failed(std::string detail, std::string remedy);
[[nodiscard]] TestResult not_applicable(std::string detail);
// An Error is a failed test.
[[nodiscard]] TestResult or_failed(Result<TestResult> result);

// "64 KiB", "1 GiB", "100 bytes": divides by 1024 only without a remainder.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

// gpu_nic_tests.cpp
[[nodiscard]] Result<TestResult> test_export(GpuBench const& bench, Allocation how);
[[nodiscard]] Result<TestResult> test_rounds(GpuBench const& bench);
[[nodiscard]] Result<TestResult> test_managed(GpuBench const& bench);
// Tries each RDMA device of this machine.
[[nodiscard]] TestResult test_registration(GpuBench const& bench);
// gpu_payload_tests.cpp
[[nodiscard]] Result<TestResult> test_payload(GpuBench const& bench, GpuPayload const& kernels,
                                              Allocation how);
[[nodiscard]] Result<TestResult> test_damage(GpuBench const& bench, GpuPayload const& kernels);
[[nodiscard]] Result<TestResult> test_rate(GpuBench const& bench, GpuPayload const& kernels);

}  // namespace vfmgr::guest::gpu
