// SPDX-License-Identifier: Apache-2.0
// Checks that packets from a served responder to a VF's address reach that VF: the kernel's
// neighbour entry for the address has the VF's MAC. Resolved when a session opens. Any thread. If
// nothing answers it takes 4 s, or 8 s after another MAC had answered; the kernel's own answers may
// take 2 s each: 16 s at most.
#pragma once

#include "guest-tools/verify/permit.hpp"
#include "vfmgr/netlink/neighbour.hpp"
#include "vfmgr/netlink/route.hpp"

namespace vfmgr::serve {

// For verify::Responder::start(). Succeeds where it can't check: the permit has no MAC, or the
// address is behind a router.
[[nodiscard]] Result<void> check_neighbour(verify::SessionPermit const& permit);

// Whether the longest matching route over the netdev exists and has no gateway. Pure.
[[nodiscard]] bool on_link(IpAddress const& address, int ifindex,
                           std::vector<IpRoute> const& routes);
// The MAC that the kernel sends to; nullopt while it is unresolved. Pure.
[[nodiscard]] std::optional<MacAddress> resolved(IpAddress const& address, int ifindex,
                                                 std::vector<Neighbour> const& neighbours);

}  // namespace vfmgr::serve
