// SPDX-License-Identifier: Apache-2.0
// Whether what a VF sends to another responder leaves the NIC. Pure.
#pragma once

#include "api/types/verification.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// By the responder's MAC: internal_switch when it is one of this host's PFs' or VFs', wire when it
// is none of them. nullopt, not known: it has none, or that of some VF is not reported.
[[nodiscard]] std::optional<TestPath> path_to(std::optional<MacAddress> const& responder,
                                              HostView const& host);

}  // namespace vfmgr
