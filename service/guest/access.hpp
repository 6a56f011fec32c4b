// SPDX-License-Identifier: Apache-2.0
// What VMs may read and do, from the published state: their attachments with a network, and a
// permit for each requested run. Pure.
#pragma once

#include "service/guest/guest_vm.hpp"
#include "vfmgr/engine/control.hpp"

namespace vfmgr {

// Returns what each running VM may do, if it can connect. While libvirt can't be queried, VMs count
// as running: their connections are still open.
[[nodiscard]] std::map<std::string, GuestVm> guest_vms(Snapshot const& now);

// Returns what the guest needs to reach the host by TCP, without what only vfmgr-guestd knows and
// without a token. The attachment is attached, in a network and has a MAC.
[[nodiscard]] Enrolment enrolment_of(Attachment const& attachment, CarriedNetwork const& carried);

// Returns a permit without a run, for the interop clients of the VM. Fails with not_found if there
// is no such attachment, and with conflict while it is not attached or has no network.
[[nodiscard]] Result<verify::SessionPermit> interop_permit(Snapshot const& now,
                                                           std::string const& id);

// Adds to a failure what only the host knows: that the VF's settings no longer match the
// attachment.
void explain_failure(Snapshot const& now, Verification& verification);

}  // namespace vfmgr
