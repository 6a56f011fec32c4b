// SPDX-License-Identifier: Apache-2.0
// Waits for udev, which renames a new netdev only while it is down. systemd-networkd in turn waits
// for udev, and never touches a netdev that was set up before. Any thread.
#pragma once

#include <filesystem>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::guest {

// Waits until udev is done with this netdev; returns at once where no udev runs. `run` is /run.
// Fails at the deadline.
[[nodiscard]] Result<void> await_udev(std::filesystem::path const& run, int ifindex,
                                      Deadline deadline);

}  // namespace vfmgr::guest
