// SPDX-License-Identifier: Apache-2.0
// Reads what only netlink shows of network and RDMA devices: lossless priorities, flow control,
// VFs' VLANs, the netdev of an RDMA port. Sends only GET requests, with a time limit. Any thread.
#pragma once

#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks {

// Requests "DCB_CMD_IEEE_GET ens1f0" and "ETHTOOL_MSG_PAUSE_GET ens1f0" for each netdev of a PCI
// function, and "RTM_GETLINK ens1f0 VFs" for each PF that has VFs.
// `facts` already has the links of /sys/class/net/*/device.
void ask_about_netdevs(Facts& facts);
// Requests "RDMA_NLDEV_CMD_GET" and "RDMA_NLDEV_CMD_PORT_GET mlx5_0".
void ask_about_rdma_devices(Facts& facts);

}  // namespace vfmgr::checks
