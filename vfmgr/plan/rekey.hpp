// SPDX-License-Identifier: Apache-2.0
// Moves all that is stored of a PF to its current address: its spec, attachments, quarantines,
// requests to its card's firmware, and the addresses in the VMs' XML. Pure.
#pragma once

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

struct PfMove {
    PciAddress from;
    PciAddress to;  // same as `from`: another card took its place
    bool operator==(PfMove const&) const = default;
};

struct RekeyPlan {
    std::vector<PfMove> moves;  // all PFs that swapped slots, since none can move alone
    Plan plan;
    // The plan only makes VFs: the VMs' XML can name them only once they are there.
    bool makes_vfs = false;
};
[[nodiscard]] Result<RekeyPlan> plan_rekey(HostView const& host, DesiredState const& desired,
                                           PciAddress const& from, PciAddress const& to);
// Returns the state to store once the XML is changed. `host` has the VFs at their new addresses.
[[nodiscard]] DesiredState rekeyed(HostView const& host, DesiredState desired,
                                   std::vector<PfMove> const& moves);

}  // namespace vfmgr
