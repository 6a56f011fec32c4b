// SPDX-License-Identifier: Apache-2.0
// rping's client: a connection set up by RDMA CM, and pings over it that the server reads, and
// writes back. Blocking; only in a process of its own: child.hpp.
#pragma once

#include "guest-tools/verify/cm_ping.hpp"

namespace vfmgr::stock {

// Errors name librdmacm's call or its event, and what each of them means: "rdma_connect ended with
// RDMA_CM_EVENT_REJECTED, status 8". conflict when RDMA CM takes another device than the VF's.
[[nodiscard]] Result<verify::Measured> ping_over_cm(verify::CmWish const& wish, Deadline deadline);

}  // namespace vfmgr::stock
