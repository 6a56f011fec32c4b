// SPDX-License-Identifier: Apache-2.0
// vf-guest report: what was found at the last verification of each VF. Runs nothing, asks nobody.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// What vf-guest leaves with.
[[nodiscard]] int run_report(Options const& options);

}  // namespace vfmgr::guest::command
