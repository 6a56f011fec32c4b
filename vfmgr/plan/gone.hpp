// SPDX-License-Identifier: Apache-2.0
// Plans the end of the attachments of a PF that is gone. Only an admin's command ends them, never
// an observation that found nothing. The first command takes the VFs out of the VMs. Addresses,
// MACs and GUIDs stay reserved until a second command confirms, or until the PF is back and its VFs
// were observed clean. Pure.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Returns the PF's attachments and quarantines, by VF.
[[nodiscard]] std::vector<Attachment> attachments_of_pf(DesiredState const& desired,
                                                        PciAddress const& pf);

// Takes its VFs out of the VMs' XML. Refused while the PF is on this host, or when the host was not
// searched for it.
[[nodiscard]] Result<Plan> plan_gone(HostView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// Removes all that is stored of a PF that does not come back. Refused while it has attachments, or
// a VM's XML still names it. No steps.
[[nodiscard]] Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                               PciAddress const& pf);

}  // namespace vfmgr
