// SPDX-License-Identifier: Apache-2.0
// What the kernel could not provide for VFs: room for their memory, bus numbers, an answer. A part
// of sriov.cpp; any thread.
#pragma once

#include <vector>

#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {

[[nodiscard]] std::vector<Finding> judge_sriov_resources(Machine const& machine);

}  // namespace vfmgr::checks
