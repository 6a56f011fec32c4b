// SPDX-License-Identifier: Apache-2.0
// rping's client: sets up a connection by RDMA CM, and sends pings over it that the server reads
// and writes back. Blocking; only in a process of its own: child.hpp.
#pragma once

#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::interop {

// Errors name librdmacm's call or the event, and what it means: "rdma_connect ended with
// RDMA_CM_EVENT_REJECTED, status 8". Fails with conflict when RDMA CM chooses another device than
// the VF's.
[[nodiscard]] Result<verify::Measured> ping_over_cm(verify::CmOptions const& options,
                                                    Deadline deadline);

}  // namespace vfmgr::interop
