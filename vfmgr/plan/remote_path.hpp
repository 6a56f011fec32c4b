// SPDX-License-Identifier: Apache-2.0
// Decides whether traffic from a VF to another responder leaves the NIC. Pure.
#pragma once

#include "api/types/verification.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Decides by the responder's MAC: internal_switch when it belongs to one of this host's PFs or VFs,
// wire when it belongs to none. nullopt, not known: it has none, or some VF's MAC is not reported.
[[nodiscard]] std::optional<TestPath> path_to(std::optional<MacAddress> const& responder,
                                              HostView const& host);

}  // namespace vfmgr
