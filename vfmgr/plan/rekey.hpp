// SPDX-License-Identifier: Apache-2.0
// What is kept of a PF goes along to the address where it answers now: its spec, attachments,
// quarantines, what was asked of its card's firmware, and the addresses in the VMs' XML. Pure.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

struct PfMove {
    PciAddress from;
    PciAddress to;  // the same: another card took its place
    bool operator==(PfMove const&) const = default;
};

struct RekeyPlan {
    std::vector<PfMove> moves;  // of PFs that swapped slots all, as none can move alone
    Plan plan;
    // It only makes VFs: what the VMs' XML is to name is known once they are there.
    bool makes_vfs = false;
};
[[nodiscard]] Result<RekeyPlan> plan_rekey(HostView const& host, DesiredState const& desired,
                                           PciAddress const& from, PciAddress const& to);
// What is kept once the XML is changed. `host` has the VFs at their new addresses.
[[nodiscard]] DesiredState rekeyed(HostView const& host, DesiredState desired,
                                   std::vector<PfMove> const& moves);

}  // namespace vfmgr
