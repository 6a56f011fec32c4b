// SPDX-License-Identifier: Apache-2.0
// What admins do about identities: the ranges that blocks are cut from, single ones that a host
// claims or releases, and a host that gives up everything before it leaves. Decided from the
// state that a replica knows; the transactions are guarded by what was decided from. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>

#include "api/types/fleet_identities.hpp"
#include "service/fleet/identities/holders.hpp"
#include "service/fleet/membership.hpp"

namespace vfmgr::fleet {

[[nodiscard]] Identity identity_of(FleetClaimRequest const& request);

// Returns the ranges, and their revision; without any, empty ones of revision 0.
struct FleetRanges {
    Identities ranges;
    Revision revision = 0;
};
[[nodiscard]] FleetRanges ranges_of(State const& state);
// Sentences about blocks that are not within these ranges, at most as many as can be read.
[[nodiscard]] std::vector<std::string> blocks_outside(State const& state, Identities const& ranges);
// Absent: they are so already. conflict: hosts have blocks outside.
[[nodiscard]] Result<std::optional<GuardedTransaction>> put_ranges(State const& state,
                                                                   Identities const& ranges,
                                                                   Request const& by);

// The host may name it in requests from then on, and nobody else may. Create-only. Absent: the host
// has claimed it already, for the same VM. conflict: somebody else has it, who is named.
[[nodiscard]] Result<std::optional<GuardedTransaction>> claim_for_host(
    State const& state, HeldByHost const& held, FleetClaimRequest const& request,
    Request const& by);
// The host is to give it up; it is nobody's once the host has. Absent: it is on its way already.
// not_found: there is no such claim. conflict: it moves to another host.
[[nodiscard]] Result<std::optional<GuardedTransaction>> release_claim(State const& state,
                                                                      Identity const& identity,
                                                                      Request const& by);

// The host is to give up all of its blocks and claims. Absent: it is to already. conflict:
// attachments there have some, or it is in quarantine, unless it is fenced; or identities are on
// their way to it.
[[nodiscard]] Result<std::optional<GuardedTransaction>> begin_leaving(State const& state,
                                                                      HeldByHost const& held,
                                                                      std::string const& host,
                                                                      Request const& by);
// Whether the host is leaving and has given up everything: by its word in `document`, or because
// somebody states that it is off.
[[nodiscard]] bool gave_up_all(Stored<HostRecord> const& host, Identities const* document);
// Erases blocks and claims of a host that is leaving and has given them up, as many as fit one
// transaction; absent: none is left.
[[nodiscard]] std::optional<GuardedTransaction> free_of_host(State const& state,
                                                             std::string const& host);

}  // namespace vfmgr::fleet
