// SPDX-License-Identifier: Apache-2.0
// Settings that a PF's spec gives VFs while no VM has them. Pure.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Returns what VFs that are neither attached nor in quarantine lack of their settings, by number. A
// setting that the driver does not report is lacking until a spec that has it is in force.
[[nodiscard]] std::vector<VfChange> lacking_on_free(DesiredState const& desired, PfState const& pf,
                                                    PfSpec const& spec);

// Appends the step that gives them those settings. A VF with another user keeps what it has, and
// the plan has a note.
void configure_free(Plan& plan, HostView const& host, DesiredState const& desired,
                    PfState const& pf, PfSpec const& spec);

[[nodiscard]] std::vector<VfSpec> settings_of_free(PfSpec const& spec);

// Checks that the PF has, or is to have, these VFs, and that nothing else has the MACs and GUIDs
// that they are to get.
[[nodiscard]] Result<void> check_free(HostView const& host, DesiredState const& desired,
                                      PfState const& pf, PfSpec const& spec);

}  // namespace vfmgr
