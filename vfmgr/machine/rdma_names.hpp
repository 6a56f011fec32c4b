// SPDX-License-Identifier: Apache-2.0
// Maps RDMA devices to netdevs, PCI functions and VFs: the join that ibdev2netdev, show_gids,
// ibstat, rdma and lspci leave to their reader. Pure; any thread.
#pragma once

#include "api/types/rdma.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// Sorted by PCI address, rows without one last. One row for each RDMA port; for RoCE LAG one for
// each PF in the bond; and one for each function of an RDMA NIC that has no RDMA device here: its
// driver's RDMA part is not loaded, or it is a VF that is attached or waits for it.
[[nodiscard]] std::vector<RdmaName> rdma_names(Machine const& machine);

enum class RdmaTable { names, gids };
// Output for people, with a line of headings; a sentence if there is nothing to list.
[[nodiscard]] std::string rdma_table(std::vector<RdmaName> const& names, RdmaTable table);

}  // namespace vfmgr::checks
