// SPDX-License-Identifier: Apache-2.0
// Waits for udev, which renames a new netdev only while it is down; systemd-networkd waits for that
// in turn, and never touches a netdev that was set up before. Any thread.
#pragma once

#include <filesystem>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::guest {

// Until udev is done with this netdev; at once where no udev runs. `run` is /run. An Error when it
// was not in time.
[[nodiscard]] Result<void> await_udev(std::filesystem::path const& run, int ifindex,
                                      Deadline deadline);

}  // namespace vfmgr::guest
