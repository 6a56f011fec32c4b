// SPDX-License-Identifier: Apache-2.0
// Reads the parameters that a driver offers through devlink. Some are the card's own settings (mlx5
// has had enable_sriov and total_vfs since 2025). Read-only. Free functions that open a socket of
// their own; any thread. Facts: vfmgr/kernel/KERNEL.md#switch-and-devlink.
#pragma once

#include "api/types/firmware.hpp"
#include "vfmgr/netlink/devlink.hpp"

namespace vfmgr {

// Empty: no devlink, or a driver without parameters.
[[nodiscard]] Result<std::vector<DevlinkParameter>> list_parameters(DevlinkDevice const& device,
                                                                    Deadline deadline);

// Parses the payload of DEVLINK_CMD_PARAM_GET's answer, behind its genlmsghdr: one parameter, once
// for each mode that it has a value in. Empty unless it is of `device`.
[[nodiscard]] std::vector<DevlinkParameter> parse_parameter(ByteView attributes,
                                                            DevlinkDevice const& device);

}  // namespace vfmgr
