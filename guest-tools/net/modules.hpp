// SPDX-License-Identifier: Apache-2.0
// Loads kernel modules that RDMA needs, by modprobe. Any thread.
#pragma once

#include <string>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::guest {

// Succeeds when the module is present, loaded or built in.
[[nodiscard]] Result<void> need_module(std::string const& sysfs, std::string const& module,
                                       Deadline deadline);

}  // namespace vfmgr::guest
