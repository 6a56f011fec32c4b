// SPDX-License-Identifier: Apache-2.0
// The all-reduce in a process of its own, with a watchdog: NCCL and GPUs may hang for ever, a
// plugin of NCCL's may crash, and NCCL writes to standard output. The command's thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/all_reduce.hpp"

namespace vfmgr::guest::gpu {

inline constexpr char const* all_reduce_command = "gpu-all-reduce";

struct AllReduceOrder {
    // This program, which calls run_all_reduce() with what is appended.
    std::vector<std::string> program{"/proc/self/exe", all_reduce_command};
    AllReduceWish wish{};
    std::chrono::seconds step_max{60};  // without a word, it hangs
};

// A verdict in any case, and in time. The caller holds no context: it would keep a GPU in exclusive
// compute mode from the process.
[[nodiscard]] TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order);

// In the process: the words are the wish's bytes_max and library. Its exit status.
int run_all_reduce(std::vector<std::string> const& words);

}  // namespace vfmgr::guest::gpu
