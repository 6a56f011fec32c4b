// SPDX-License-Identifier: Apache-2.0
// Runs the all-reduce in a process of its own, with a watchdog: NCCL and GPUs may hang forever, an
// NCCL plugin may crash, and NCCL writes to standard output. The command's thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/all_reduce.hpp"

namespace vfmgr::guest::gpu {

inline constexpr char const* all_reduce_command = "gpu-all-reduce";

struct AllReduceOrder {
    // This program, which calls run_all_reduce() with the arguments appended to these.
    std::vector<std::string> program{"/proc/self/exe", all_reduce_command};
    AllReduceOptions options{};
    std::chrono::seconds step_max{60};  // no message for this long is a hang
};

// Returns a verdict in any case, and in time. The caller must hold no context: in exclusive compute
// mode it would keep the GPU from the process.
[[nodiscard]] TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order);

// Runs in the process. `words` are bytes_max and library. Returns the exit status.
int run_all_reduce(std::vector<std::string> const& words);

}  // namespace vfmgr::guest::gpu
