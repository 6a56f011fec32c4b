// SPDX-License-Identifier: Apache-2.0
// What a served responder sends to a VF's address must reach that VF: the kernel's neighbour entry
// for it has the VF's MAC. It is resolved when a session opens. Any thread; takes up to 5 s.
#pragma once

#include "guest-tools/verify/permit.hpp"
#include "vfmgr/netlink/neighbour.hpp"
#include "vfmgr/netlink/route.hpp"

namespace vfmgr::serve {

// For verify::Responder::start(). Success where nothing can be said: the permit has no MAC, or the
// address is behind a router.
[[nodiscard]] Result<void> check_neighbour(verify::SessionPermit const& permit);

// Reached over the netdev without a router, by the longest prefix that it has a route for. Pure.
[[nodiscard]] bool on_link(IpAddress const& address, int ifindex,
                           std::vector<IpRoute> const& routes);
// The MAC that the kernel sends to; nullopt while it does not know. Pure.
[[nodiscard]] std::optional<MacAddress> resolved(IpAddress const& address, int ifindex,
                                                 std::vector<Neighbour> const& neighbours);

}  // namespace vfmgr::serve
