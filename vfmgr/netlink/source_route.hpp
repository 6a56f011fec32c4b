// SPDX-License-Identifier: Apache-2.0
// Routes packets from an address out of its own device: a routing table for the address, and the
// rule that leads to it. Free functions on a socket that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/address.hpp"

namespace vfmgr {

// Before the main table's rule (32766), after the local one's (0).
inline constexpr std::uint32_t source_rule_priority = 30118;

// Returns the table's number: the IPv4 address as an integer, so it is unique and the same after a
// reboot; for an IPv6 address its 32-bit groups, combined by exclusive or.
[[nodiscard]] std::uint32_t source_table(IpAddress const& address);

// Adds a route to the address's network, by its device, to that table. Succeeds if both are already
// there. Destinations without a route in the table are looked up in the main table as before.
[[nodiscard]] Result<void> add_source_route(NlSocket& socket, NetdevAddress const& address,
                                            Deadline deadline);
// Succeeds when both are already gone, with the device, for example.
[[nodiscard]] Result<void> remove_source_route(NlSocket& socket, NetdevAddress const& address,
                                               Deadline deadline);

}  // namespace vfmgr
