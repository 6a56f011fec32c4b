// SPDX-License-Identifier: Apache-2.0
// The results of tests as lines for people, the same in vf-guest and vfctl. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr {

enum class Figures { important, all };

// One line per test: its name, its verdict and the figures that matter, or why it did not pass. A
// detail that does not fit into 100 columns gets a line of its own; a remedy always does. `all`
// adds the judge, the number of bytes checked, and every figure.
[[nodiscard]] std::string test_lines(std::vector<TestResult> const& tests, Figures shown);

}  // namespace vfmgr
