// SPDX-License-Identifier: Apache-2.0
// Who listens by RDMA CM on an RDMA device, as `rdma resource show cm_id` shows it. Free functions
// on a socket of NlProtocol::rdma that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/rdma_link.hpp"

namespace vfmgr {

struct CmListener {
    std::optional<std::int32_t> pid;   // absent: the kernel itself
    std::string comm;                  // "nvmet_rdma"; of a process the caller's to add
    std::optional<IpAddress> address;  // absent: every address, or one that is none of IP
    std::uint16_t port = 0;            // 0 where the address is none of IP
    bool operator==(CmListener const&) const = default;
};

// Those at every address, too: the kernel has a CM id of each of them on each device.
[[nodiscard]] Result<std::vector<CmListener>> list_cm_listeners(NlSocket& rdma,
                                                                RdmaDevice const& device,
                                                                Deadline deadline);

// Payload of RDMA_NLDEV_CMD_RES_CM_ID_GET: those of its CM ids that listen.
[[nodiscard]] std::vector<CmListener> parse_cm_listeners(ByteView payload);

}  // namespace vfmgr
