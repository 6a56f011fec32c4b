// SPDX-License-Identifier: Apache-2.0
// The lines of OpenSM's partitions.conf that this host's networks need. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/network.hpp"
#include "api/types/pf_state.hpp"

namespace vfmgr {

struct PartitionLine {
    std::string network;
    Pkey pkey;
    Guid port_guid;
    std::string of;  // "PF ibp1s0", "VM db1"
    std::string line;
    bool operator==(PartitionLine const&) const = default;
};

// Returns the lines of each network that has a P_Key: its PFs are full members, and the VFs of its
// attachments have the network's membership. A PF whose port's GUID is unknown has no line.
[[nodiscard]] std::vector<PartitionLine> partition_lines(
    std::vector<Network> const& networks, std::vector<PfView> const& pfs,
    std::vector<Attachment> const& attachments);

}  // namespace vfmgr
