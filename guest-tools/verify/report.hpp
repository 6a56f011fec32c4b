// SPDX-License-Identifier: Apache-2.0
// A verification as text for people. Pure.
#pragma once

#include <string>

#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"

namespace vfmgr::verify {

// Several lines, each with a newline: the verdict, then those of test_lines().
[[nodiscard]] std::string describe(Verification const& verification,
                                   Figures shown = Figures::important);

}  // namespace vfmgr::verify
