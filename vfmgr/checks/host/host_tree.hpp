// SPDX-License-Identifier: Apache-2.0
// Where a host's GPUs and SR-IOV NICs are, and which belong together. Pure; any thread.
#pragma once

#include "api/types/host_tree.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// GPUs are NVIDIA's, whatever driver they have; NICs are PFs that can have VFs. Pairs each GPU as
// if all VFs of all PFs were free.
[[nodiscard]] HostTree host_tree(Machine const& host);

}  // namespace vfmgr::checks
