// SPDX-License-Identifier: Apache-2.0
// What a membership of a fleet demands of commands. On the control thread.
#pragma once

#include <cstdint>

#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {

// Refuses a scheduler of the fleet that another has taken the place of: precondition_failed. Makes
// a higher fence durable before anything is done for whoever shows it. Of a host in no fleet:
// forbidden.
[[nodiscard]] Result<void> admit_fence(Control::State& state, std::uint64_t fence);

// Refuses what would hand out VFs or identities of a restored store, which does not know what was
// attached since its backup: unavailable, until ConfirmRestored. Of a fleet's member only: the
// fleet may have given its VMs and their identities to other hosts.
[[nodiscard]] Result<void> check_confirmed(DesiredState const& desired, Command const& command);

}  // namespace vfmgr
