// SPDX-License-Identifier: Apache-2.0
// Judge functions of the RDMA stack's rules that are defined or called outside stack.cpp, which
// lists the rules.
// Pure; any thread.
#pragma once

#include <vector>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// stack.cpp; vf-guest judges by it before it loads a module
[[nodiscard]] std::vector<Finding> judge_secure_boot(Machine const& machine);
// stack_modules.cpp
[[nodiscard]] std::vector<Finding> judge_rdma_core(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_driver(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_symbols(Machine const& machine);
// stack_build.cpp
[[nodiscard]] std::vector<Finding> judge_headers(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_dkms(Machine const& machine);

}  // namespace vfmgr::checks
