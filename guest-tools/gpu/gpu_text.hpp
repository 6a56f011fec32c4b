// SPDX-License-Identifier: Apache-2.0
// GPUs and their tests as text for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/types/topology.hpp"

namespace vfmgr::guest::gpu {

// Several lines for each GPU, each ending in a newline.
[[nodiscard]] std::string describe(std::vector<GpuInfo> const& gpus);
// One line for each test, with its detail.
[[nodiscard]] std::string describe(TestResult const& test);
[[nodiscard]] std::string describe(GpuTestReport const& report);

}  // namespace vfmgr::guest::gpu
