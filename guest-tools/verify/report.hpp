// SPDX-License-Identifier: Apache-2.0
// A verification as text for people. Pure.
#pragma once

#include <string>

#include "api/types/verification.hpp"

namespace vfmgr::verify {

// Several lines, each with a newline: the verdict, then one line for each test.
[[nodiscard]] std::string describe(Verification const& verification);

}  // namespace vfmgr::verify
