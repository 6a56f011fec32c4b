// SPDX-License-Identifier: Apache-2.0
// Where functions are on a machine's PCI tree. Any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/topology.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// Reads only the places of these functions, the PFs of VFs, and the ports above them: on this
// machine, or below `root`. Blocks as files of sysfs do.
[[nodiscard]] Facts collect_places(std::string const& root,
                                   std::vector<PciAddress> const& functions);

// Pure.
[[nodiscard]] PciPlace place_of(Machine const& machine, PciDevice const& device);

}  // namespace vfmgr::checks
