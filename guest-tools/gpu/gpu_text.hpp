// SPDX-License-Identifier: Apache-2.0
// GPUs and tests of them as people read them. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/types/gpu.hpp"

namespace vfmgr::guest::gpu {

// Several lines for each, each ended.
[[nodiscard]] std::string describe(std::vector<GpuInfo> const& gpus);
// One line for each test, and what is to be said of it.
[[nodiscard]] std::string describe(TestResult const& test);
[[nodiscard]] std::string describe(GpuTestReport const& report);

}  // namespace vfmgr::guest::gpu
