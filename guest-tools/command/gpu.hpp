// SPDX-License-Identifier: Apache-2.0
// GPUs for GPUDirect RDMA: `gpu` lists them, `gpu test` proves what can be proved without a NIC,
// `gpu topology` prints how far they are from NICs. Blocks; the main thread.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

[[nodiscard]] int list_gpus(Options const& options);
// Return vf-guest's exit status: 0 on a pass, and where the GPU offers no GPUDirect.
[[nodiscard]] int test_gpu(Options const& options);
[[nodiscard]] int show_topology(Options const& options);

}  // namespace vfmgr::guest::command
