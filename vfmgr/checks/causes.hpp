// SPDX-License-Identifier: Apache-2.0
// Causes before symptoms: which failed finding explains which, and which remedies a crash of the
// kernel forbids. diagnose() applies this to all findings. Pure; any thread.
#pragma once

#include <vector>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/relatives.hpp"

namespace vfmgr::checks {

// Sets `caused_by` of findings that another explains, and moves causes before what they explain.
void explain(Machine const& machine, Relatives const& relatives, std::vector<Finding>& findings);

}  // namespace vfmgr::checks
