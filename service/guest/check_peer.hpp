// SPDX-License-Identifier: Apache-2.0
// What the host sends to a VF's address must reach that VF or nobody: a permanent neighbour entry
// with its MAC, and a route of ours over the leg (the AddPeer step made both). Asked of the kernel
// when a session opens. Any thread.
#pragma once

#include <vector>

#include "guest-tools/verify/permit.hpp"
#include "vfmgr/netlink/neighbour.hpp"
#include "vfmgr/netlink/route.hpp"

namespace vfmgr {

// For Responder::start().
[[nodiscard]] Result<void> check_peer(verify::SessionPermit const& permit);

// Its judgement, pure: `ifindex` is the leg's.
[[nodiscard]] Result<void> judge_peer(verify::SessionPermit const& permit, int ifindex,
                                      std::vector<Neighbour> const& neighbours,
                                      std::vector<IpRoute> const& routes);

}  // namespace vfmgr
