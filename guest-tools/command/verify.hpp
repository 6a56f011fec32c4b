// SPDX-License-Identifier: Apache-2.0
// vf-guest verify: proves RDMA now, over the VFs of this VM or against a served responder.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// Returns vf-guest's exit status: the worst of all.
[[nodiscard]] int run_verify(Options const& options);

}  // namespace vfmgr::guest::command
