// SPDX-License-Identifier: Apache-2.0
// What is sent from an address leaves by its own device: a routing table of the address's own, and
// the rule that leads to it. Free functions on a socket that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/address.hpp"

namespace vfmgr {

// Before the main table's rule (32766), behind the local one's (0).
inline constexpr std::uint32_t source_rule_priority = 30118;

// The table's number: the IPv4 address read as one, so that no other address has it and it is the
// same after a reboot; of an IPv6 address its 32-bit groups, combined by exclusive or.
[[nodiscard]] std::uint32_t source_table(IpAddress const& address);

// Its network, by its device, in that table. Success when both are there already, or once they are.
// Whatever the table has no route for is looked up in the main table as before.
[[nodiscard]] Result<void> add_source_route(NlSocket& socket, NetdevAddress const& address,
                                            Deadline deadline);
// Success when both are gone already, with the device, say.
[[nodiscard]] Result<void> remove_source_route(NlSocket& socket, NetdevAddress const& address,
                                               Deadline deadline);

}  // namespace vfmgr
