// SPDX-License-Identifier: Apache-2.0
// Reservations in etcd: the transactions that write and erase them, and what clients see of them.
// Decided from the state that a replica knows, and guarded by it. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "api/types/fleet_reservation.hpp"
#include "service/auth/authenticate.hpp"
#include "service/fleet/etcd/settle.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/schedule/schedule.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

inline constexpr std::size_t fleet_reservations_max = 10'000;
inline constexpr std::size_t fleet_reservations_each_max = 1'024;  // of a tenant, or a principal
// A host's clock may be behind: so long after it expired, a reservation is over without its word.
inline constexpr std::chrono::seconds expiry_margin{300};

// The record of what was chosen for a request. `act`: random, of the transaction.
[[nodiscard]] ReservationRecord record_of(FleetReservationSpec const& spec, Ranked const& chosen,
                                          Principal const& who, Time now, std::string act);
// Writes a reservation that is not there yet. `instead_of`: the act of the record in whose place it
// comes, which this request wrote before; empty: there is none. Fails with conflict if somebody
// else has the name, with limit_exceeded if there are too many.
[[nodiscard]] Result<GuardedTransaction> hold(State const& state, ReservationRecord const& record,
                                              std::string const& instead_of);
// Erases it as it was known. Absent: it is not there as of that act.
[[nodiscard]] std::optional<GuardedTransaction> erase(State const& state, std::string const& name,
                                                      std::string const& act);

// Whether the reservation is that principal's to see and to end: everybody's of its tenant, and
// anybody's who is of none.
[[nodiscard]] bool may_see(ReservationRecord const& record, Principal const& who);
// Refuses who asks for a name that somebody else has, or with another request. The time for which
// it is kept may differ: that is how it is renewed.
[[nodiscard]] Result<void> check_same(ReservationRecord const& record,
                                      FleetReservationSpec const& spec, Principal const& who);

// What the scheduler has to leave alone because of it, until its host reports it.
[[nodiscard]] Decision decision_of(ReservationRecord const& record);
// In what rack the reservations of a group are, other than `name`; absent: there are none.
[[nodiscard]] std::optional<std::string> rack_of_group(State const& state, std::string_view group,
                                                       std::string_view name);
// The reservation in its host's own list; null: the host has not reported it.
[[nodiscard]] Item<ReservationFacts> const* listed(InventoryView const& view, std::string_view host,
                                                   std::string const& name);

// As clients see it, before the host's own word is added.
[[nodiscard]] FleetReservation view_of(ReservationRecord const& record);
// With what the host said that it keeps.
[[nodiscard]] FleetReservation held(FleetReservation view, Reservation const& kept);
// Sets the candidates, of which a request can have a thousand: those that suit best, and as many
// that don't.
void set_candidates(FleetReservation& view, std::vector<Ranked> const& ranked);

[[nodiscard]] Error no_fleet_reservation(std::string const& name);

}  // namespace vfmgr::fleet
