// SPDX-License-Identifier: Apache-2.0
// vf-guest report: the findings of the last verification of each VF. Runs nothing, queries nothing.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// Returns vf-guest's exit status.
[[nodiscard]] int run_report(Options const& options);

}  // namespace vfmgr::guest::command
