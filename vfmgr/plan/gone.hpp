// SPDX-License-Identifier: Apache-2.0
// What is lent of a PF that is gone ends by a person's word, never by a look that found nothing.
// First it is taken out of the VMs; addresses, MACs and GUIDs stay reserved until that is
// confirmed, or until the PF is back and its VFs were seen clean. Pure.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// All that is lent of the PF or in quarantine, by VF.
[[nodiscard]] std::vector<Attachment> lent_of(DesiredState const& desired, PciAddress const& pf);

// Its VFs out of the VMs' XML. Refused while the PF is on this host, or was not looked for.
[[nodiscard]] Result<Plan> plan_gone(HostView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// It does not come back: all that is kept of it is forgotten. Refused while anything is lent of it,
// or a VM's XML still names it. No steps.
[[nodiscard]] Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                               PciAddress const& pf);

}  // namespace vfmgr
