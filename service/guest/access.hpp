// SPDX-License-Identifier: Apache-2.0
// What one VM may see and do, from what is published: its leases with a network, and a permit for
// each run that is wanted. Pure.
#pragma once

#include "service/guest/plane.hpp"
#include "vfmgr/engine/control.hpp"

namespace vfmgr {

// not_found when this life of the VM is over.
[[nodiscard]] Result<GuestAccess> guest_access(Snapshot const& now, VmIdentity const& vm,
                                               std::uint16_t echo_port);

// Without a run, for the VM's stock clients. not_found, conflict while it is not attached or
// without a network.
[[nodiscard]] Result<verify::SessionPermit> stock_permit(Snapshot const& now,
                                                         std::string const& attachment);

// Adds to a failure what the host knows and the test can't: that the VF's settings are no longer
// those of the lease.
void explain_failure(Snapshot const& now, Verification& verification);

}  // namespace vfmgr
