// SPDX-License-Identifier: Apache-2.0
// Whether any VM has a VF of a host. One thread.
#pragma once

#include "service/cli/session.hpp"

namespace vfmgr {

// vf_in_use, with the VMs' names, where one has; also when it can't be seen.
[[nodiscard]] Result<void> require_drained(Options const& options);

}  // namespace vfmgr
