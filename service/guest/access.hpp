// SPDX-License-Identifier: Apache-2.0
// What one VM may read and do, from the published state: its attachments with a network, and a
// permit for each requested run. Pure.
#pragma once

#include "service/guest/plane.hpp"
#include "vfmgr/engine/control.hpp"

namespace vfmgr {

// Fails with not_found if this life of the VM is over.
[[nodiscard]] Result<GuestAccess> guest_access(Snapshot const& now, VmIdentity const& vm,
                                               std::uint16_t echo_port);

// Returns a permit without a run, for the interop clients of the VM. Fails with not_found if there
// is no such attachment, and with conflict while it is not attached or has no network.
[[nodiscard]] Result<verify::SessionPermit> interop_permit(Snapshot const& now,
                                                           std::string const& id);

// Adds to a failure what only the host knows: that the VF's settings no longer match the
// attachment.
void explain_failure(Snapshot const& now, Verification& verification);

}  // namespace vfmgr
