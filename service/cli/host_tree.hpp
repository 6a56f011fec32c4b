// SPDX-License-Identifier: Apache-2.0
// A host's PCI tree for people: as text and as a drawing. Pure, any thread.
#pragma once

#include <string>

#include "api/types/host_tree.hpp"

namespace vfmgr {

// A line for each host bridge, port, GPU and NIC, what is below another one indented.
[[nodiscard]] std::string tree_text(HostTree const& tree);
// The same lines as SVG, each GPU and its PF connected by a line that says their distance.
[[nodiscard]] std::string tree_svg(HostTree const& tree);

}  // namespace vfmgr
