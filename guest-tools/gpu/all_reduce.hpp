// SPDX-License-Identifier: Apache-2.0
// Runs a short NCCL all-reduce over all GPUs that CUDA lists, as programs for several GPUs do at
// their start. Each GPU holds values of its own, and every sum in every GPU is compared with its
// expected value. One thread.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/nccl.hpp"

namespace vfmgr::guest::gpu {

// What each rank adds in the test's all-reduce: whole numbers whose sum a float holds exactly,
// whatever the order of addition. They differ by run, rank and place, so a sum that is stale,
// misplaced or lacks a rank never equals the expected one. Pure.
struct AllReduceValues {
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;

    [[nodiscard]] std::uint32_t of(std::uint32_t rank, std::size_t element) const {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
        constexpr int exact_bits = 24;                     // of a float
        auto mixed = (seed + (std::uint64_t{rank} << 40U) + element) * odd;
        mixed = (mixed ^ mixed >> 32U) * odd;
        auto const bits = exact_bits - std::bit_width(ranks);
        return static_cast<std::uint32_t>(mixed >> (64 - bits));
    }
    [[nodiscard]] std::uint32_t sum(std::size_t element) const {
        std::uint32_t sum = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += of(rank, element);
        return sum;
    }
};

struct AllReduceEars {
    // Called before each step with what it does: "making communicators …". If the test hangs, it
    // hangs in the last of these steps.
    std::function<void(std::string const&)> on_step;
    // Called before anything is freed, since freeing waits for what still runs on the GPUs.
    std::function<void(TestResult const&)> on_result;
};

// `gpus` are all GPUs that CUDA lists, in its order: at least two. May hang wherever NCCL or a GPU
// does.
void all_reduce(Cuda const& cuda, std::vector<CudaGpu> const& gpus, std::uint64_t bytes_max,
                AllReduceEars const& ears, std::string const& library = nccl_library);

// Runs the all-reduce in a process of its own, with a watchdog: NCCL and GPUs may hang forever, an
// NCCL plugin may crash, and NCCL writes to standard output. The command's thread.

inline constexpr char const* all_reduce_command = "gpu-all-reduce";

struct AllReduceOrder {
    std::uint64_t bytes_max = std::uint64_t{64} << 20U;  // less where memory is short
    // This program, which calls run_all_reduce() with `bytes_max` appended to these.
    std::vector<std::string> program{"/proc/self/exe", all_reduce_command};
    std::chrono::seconds step_max{60};  // no message for this long is a hang
};

// Returns a verdict in any case, and in time. The caller must hold no context: in exclusive compute
// mode it would keep the GPU from the process.
[[nodiscard]] TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order);

// Runs in that process. `words` holds bytes_max. Returns the exit status.
int run_all_reduce(std::vector<std::string> const& words);

}  // namespace vfmgr::guest::gpu
