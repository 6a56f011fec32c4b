// SPDX-License-Identifier: Apache-2.0
// Lists the RDMA CM listeners of an RDMA device, as `rdma resource show cm_id` does. Free functions
// on a socket of NlProtocol::rdma that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/rdma_link.hpp"

namespace vfmgr {

struct CmListener {
    std::optional<std::int32_t> pid;   // absent: the kernel itself
    std::string comm;                  // "nvmet_rdma"; the caller adds a process's
    std::optional<IpAddress> address;  // absent: every address, or one that is not IP
    std::uint16_t port = 0;            // 0 when the address is not IP
    bool operator==(CmListener const&) const = default;
};

// Includes listeners on every address: the kernel has a CM id for each of them on each device.
[[nodiscard]] Result<std::vector<CmListener>> list_cm_listeners(NlSocket& rdma,
                                                                RdmaDevice const& device,
                                                                Deadline deadline);

// Reads the payload of RDMA_NLDEV_CMD_RES_CM_ID_GET, and returns the CM ids that listen.
[[nodiscard]] std::vector<CmListener> parse_cm_listeners(ByteView payload);

}  // namespace vfmgr
