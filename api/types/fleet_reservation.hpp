// SPDX-License-Identifier: Apache-2.0
// VFs of one host, kept for a job: the fleet chooses the host, and says why it is that one and why
// it is no other. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/reservation.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"

namespace vfmgr {

// pack: the fullest host that still suits, so that whole hosts stay free for large jobs.
// spread: the emptiest one, so that a lost host or rack takes few VFs with it.
enum class HostStrategy { pack, spread };

// A request: names a pool, a network, or both.
struct FleetReservationSpec {
    std::string name{};  // [a-z0-9-], at most 32; empty: the request's path has it, or it is chosen
    std::optional<std::string> pool{};
    std::optional<std::string> network{};
    std::uint16_t count = 1;    // of VFs, 1..128, all of one host
    bool one_per_rail = false;  // each VF on a rail of its own
    std::optional<Near> near{};
    // With near: so many GPUs that no VM has get a VF each that is within `within`. Absent:
    // `count`.
    std::optional<std::uint16_t> gpus{};
    std::optional<PciDistance> within{};          // with near; absent: PXB
    std::vector<std::string> hosts{};             // one of them; empty: any
    std::map<std::string, std::string> labels{};  // all of them, of the host
    std::vector<std::string> racks{};             // one of them; empty: any
    HostStrategy strategy = HostStrategy::pack;
    // Reservations that name the same group get hosts of the same rack.
    std::optional<std::string> same_rack{};
    // NVSwitch partition, by the id that the host's record has: all of its GPUs must be free, and
    // those of `near` are among them.
    std::optional<std::string> partition{};
    std::uint32_t seconds = 600;  // from now, 10..604800
    bool operator==(FleetReservationSpec const&) const = default;
};

// What `within` is when the request leaves it out: PCI switches only, no host bridge.
inline constexpr PciDistance near_enough = PciDistance::pxb;

inline constexpr std::size_t fleet_candidates_max = 64;

// A host that was considered.
struct HostCandidate {
    std::string host;
    bool chosen = false;
    std::string reason;  // what is said for it, or why it does not suit
    bool operator==(HostCandidate const&) const = default;
};

// planned: nothing is kept, this is what a request would get. holding: the host has not confirmed
// that it keeps the VFs. held: it has.
enum class HoldState { planned, holding, held };
template <>
inline constexpr std::array<EnumName<HoldState>, 3> enum_names<HoldState> = {
    {{HoldState::planned, "planned"}, {HoldState::holding, "holding"}, {HoldState::held, "held"}}};

struct FleetReservation {
    std::string name;
    FleetReservationSpec spec;
    HoldState state = HoldState::holding;
    std::string host;
    std::vector<VfsOfPf> pfs;      // so many VFs of each PF were chosen
    std::vector<VfId> vfs;         // as the host reports them: those that no attachment has yet
    std::vector<PciAddress> gpus;  // that they are near; nobody keeps them from others
    // The chosen one first; fleet_candidates_max at most.
    std::vector<HostCandidate> candidates;
    std::uint32_t more_candidates = 0;  // that are not named
    std::string requested_by;
    Time created_at{};
    Time expires_at{};
    std::optional<std::string> tenant{};  // whose it is
    bool operator==(FleetReservation const&) const = default;
};

extern template struct Json<FleetReservationSpec>;
extern template struct Json<HostCandidate>;
extern template struct Json<FleetReservation>;

}  // namespace vfmgr
