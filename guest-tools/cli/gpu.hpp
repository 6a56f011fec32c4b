// SPDX-License-Identifier: Apache-2.0
// GPUs for GPUDirect RDMA: `gpu` lists them, `gpu test` proves what can be proved without a NIC,
// `gpu topology` prints how far they are from NICs. Blocks; the main thread.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "guest-tools/cli/options.hpp"

namespace vfmgr::guest::command {

[[nodiscard]] int list_gpus(Options const& options);
// Return vf-guest's exit status: 0 on a pass, and where the GPU offers no GPUDirect.
[[nodiscard]] int test_gpu(Options const& options);
[[nodiscard]] int show_topology(Options const& options);

// Makes GPU memory reachable for the NIC, on request: `peermem`. Blocks; the main thread.

// Parses "90s", "10m", "1h": from a second to a day.
[[nodiscard]] std::optional<std::chrono::seconds> parse_wait(std::string_view text);

// Returns vf-guest's exit status: 0 when the module is loaded or not needed, 1 when it can't be
// loaded or the kernel refused it, 7 when what it waits for did not appear.
[[nodiscard]] int run_peermem(Options const& options);

}  // namespace vfmgr::guest::command
