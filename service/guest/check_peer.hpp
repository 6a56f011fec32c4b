// SPDX-License-Identifier: Apache-2.0
// The host's packets to a VF's address must reach that VF or be dropped. That requires a permanent
// neighbour entry with the VF's MAC, and our route over the interface (the AddPeer step creates
// both).
// Reads both from the kernel when a session opens. Any thread.
#pragma once

#include <vector>

#include "vfmgr/netlink/ip.hpp"
#include "vfmgr/proof/permit.hpp"

namespace vfmgr {

// For Responder::start().
[[nodiscard]] Result<void> check_peer(verify::SessionPermit const& permit);

// The judgement alone, pure: `ifindex` is the interface's.
[[nodiscard]] Result<void> judge_peer(verify::SessionPermit const& permit, int ifindex,
                                      std::vector<Neighbour> const& neighbours,
                                      std::vector<IpRoute> const& routes);

}  // namespace vfmgr
