// SPDX-License-Identifier: Apache-2.0
// Judge functions of the GPUDirect rules that are defined or called outside gpu.cpp, which lists
// the rules; and what they share. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// gpu.cpp; vf-guest judges by them before it loads a module
[[nodiscard]] std::vector<Finding> judge_gpu_driver(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_igpu(Machine const& machine);
// gpu_peermem.cpp
[[nodiscard]] std::vector<Finding> judge_install_order(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_peermem(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_nv_peer_mem(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_peermem_at_boot(Machine const& machine);
// kubernetes.cpp
[[nodiscard]] bool runs_kubelet(Machine const& machine);

// Why GPUDirect has nothing to judge here: no GPU of its own with NVIDIA's driver, no RDMA NIC.
[[nodiscard]] std::optional<Finding> no_gpudirect(Machine const& machine);
// Something is missing that only a GPU with GPUDirect needs, and this GPU may not have it.
[[nodiscard]] Finding perhaps_no_gpudirect(std::string detail, std::vector<Evidence> evidence);

}  // namespace vfmgr::checks
