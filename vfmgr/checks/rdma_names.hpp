// SPDX-License-Identifier: Apache-2.0
// Which RDMA device is which netdev, PCI function and VF: the join that ibdev2netdev, show_gids,
// ibstat, rdma and lspci leave to their reader. Pure; any thread.
#pragma once

#include "api/types/rdma_name.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::checks {

// By PCI address, what has none last. A row for each RDMA port; of RoCE LAG one for each PF in the
// bond; and one for each function of an RDMA NIC that has no RDMA device here: its driver's RDMA
// part is not loaded, or it is a VF that is lent or waits for it.
[[nodiscard]] std::vector<RdmaName> rdma_names(Machine const& machine);

enum class RdmaTable { names, gids };
// For people, with a line of headings; a sentence where there is nothing.
[[nodiscard]] std::string rdma_table(std::vector<RdmaName> const& names, RdmaTable table);

}  // namespace vfmgr::checks
