// SPDX-License-Identifier: Apache-2.0
// Judge functions of the RDMA stack's rules, by file; stack.cpp lists the rules. Pure; any thread.
#pragma once

#include <vector>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// stack_modules.cpp
[[nodiscard]] std::vector<Finding> judge_rdma_core(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_connectx_driver(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_symbols(Machine const& machine);
// stack_ofed.cpp
[[nodiscard]] std::vector<Finding> judge_ofed(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_openibd(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_firmware_tools(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_firmware_updater(Machine const& machine);
// stack_build.cpp
[[nodiscard]] std::vector<Finding> judge_headers(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_dkms(Machine const& machine);
// stack_boot.cpp
[[nodiscard]] std::vector<Finding> judge_secure_boot(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_lockdown(Machine const& machine);

}  // namespace vfmgr::checks
