// SPDX-License-Identifier: Apache-2.0
// Chooses the host for a request, among all hosts of the fleet. Pure: equal input gives an equal
// answer on every replica. 1,000 hosts of 8 PFs and 8 GPUs take a few milliseconds
// (tests/bench/programs/fleet_schedule.cpp).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/types/fleet_reservation.hpp"
#include "service/fleet/schedule/host_summary.hpp"
#include "service/fleet/schedule/suits.hpp"
#include "service/fleet/schedule/taken.hpp"

namespace vfmgr::fleet {

struct Ranked {
    std::string host;
    std::string rack;
    std::string reason;          // what is said for it, or why it does not suit
    std::optional<Suits> fit{};  // absent: it does not suit
};

// Those that suit, best first; then the others, and hosts that the request names and the fleet does
// not have, by name. Best is the host whose GPUs are nearest to their VFs, the worst pairs first;
// of those, for pack the one with the fewest VFs left and then the fewest free GPUs that the job
// does not use; for spread the one with the most VFs left, then the one of the rack that is used
// least; of those, the first by name. `hosts`: in any order, none nullptr.
[[nodiscard]] std::vector<Ranked> schedule(std::span<HostSummary const* const> hosts,
                                           PlacementRequest const& request, Taken const& taken);

// The first, or limit_exceeded with the reasons; what a tenant reads names no hosts.
[[nodiscard]] Result<Ranked> chosen(std::vector<Ranked> const& ranked,
                                    FleetReservationSpec const& spec);

// For Taken::add(): what the first of `ranked` will have taken.
[[nodiscard]] Decision decision_of(Ranked const& chosen, FleetReservationSpec const& spec);

// For the answer: the first is the chosen one, if it suits.
[[nodiscard]] std::vector<HostCandidate> candidates_of(std::vector<Ranked> const& ranked);

}  // namespace vfmgr::fleet
