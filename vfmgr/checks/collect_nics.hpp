// SPDX-License-Identifier: Apache-2.0
// What netlink alone tells of network and RDMA devices: lossless priorities, flow control, VFs'
// VLANs, the netdev of an RDMA port. Only asks to get; a time limit for each question. Any thread.
#pragma once

#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks {

// "DCB_CMD_IEEE_GET ens1f0", "ETHTOOL_MSG_PAUSE_GET ens1f0", of each netdev of a PCI function, and
// "RTM_GETLINK ens1f0 VFs" of each PF that has VFs;
// `facts` has the links of /sys/class/net/*/device already.
void ask_about_netdevs(Facts& facts);
// "RDMA_NLDEV_CMD_GET", "RDMA_NLDEV_CMD_PORT_GET mlx5_0".
void ask_about_rdma_devices(Facts& facts);

}  // namespace vfmgr::checks
