// SPDX-License-Identifier: Apache-2.0
// No claim goes beyond what was looked at: "ok" and "not applicable" need every fact that they
// rest on. diagnose() applies this to each rule's findings. Pure; any thread.
#pragma once

#include <vector>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/relatives.hpp"

namespace vfmgr::checks {

// Makes findings unknown that rest on a fact in `unread`, which the rule asked for and nobody could
// read; adds one for a device that the rule left out for the same reason.
void limit_claims(Relatives const& relatives, RestsOn rests_on, std::vector<Unknown> const& unread,
                  std::vector<Finding>& findings);

}  // namespace vfmgr::checks
