// SPDX-License-Identifier: Apache-2.0
// Plans the end of the attachments of a PF that is gone. Only a person's command ends them, never
// an observation that found nothing. The first command takes the VFs out of the VMs; addresses,
// MACs and GUIDs stay reserved until a second command confirms, or until the PF is back and its VFs
// were seen clean. Pure.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Returns the PF's attachments and quarantines, by VF.
[[nodiscard]] std::vector<Attachment> lent_of(DesiredState const& desired, PciAddress const& pf);

// Takes its VFs out of the VMs' XML. Refused while the PF is on this host, or was not looked for.
[[nodiscard]] Result<Plan> plan_gone(HostView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// Forgets all that is stored of a PF that does not come back. Refused while it has attachments, or
// a VM's XML still names it. No steps.
[[nodiscard]] Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                               PciAddress const& pf);

}  // namespace vfmgr
