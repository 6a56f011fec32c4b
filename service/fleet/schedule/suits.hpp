// SPDX-License-Identifier: Apache-2.0
// Whether a host suits a request, which of its VFs the request gets there, and otherwise why not,
// in words for an admin. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/types/fleet_reservation.hpp"
#include "service/fleet/schedule/host_summary.hpp"
#include "service/fleet/schedule/near_rails.hpp"
#include "service/fleet/schedule/taken.hpp"

namespace vfmgr::fleet {

struct PlacementRequest {
    FleetReservationSpec spec;
    // Where the other reservations of spec.same_rack are; absent: there are none.
    std::optional<std::string> group_rack{};
};

// A GPU, the PF whose VF is near it, and what lies between.
struct GpuShare {
    PciAddress gpu;
    PciAddress pf;
    PciDistance distance = PciDistance::unknown;
    bool operator==(GpuShare const&) const = default;
};

struct Suits {
    std::vector<RailShare> vfs;    // by address
    std::vector<GpuShare> gpus;    // by address; none without `near`
    std::vector<PciAddress> held;  // GPUs that the job will use: those, or its whole partition
    Distances distances{};
    std::uint32_t free = 0;     // VFs that the request could get here
    std::size_t rails = 0;      // on so many rails
    std::uint32_t left = 0;     // VFs of the host that are free afterwards, of whatever network
    std::size_t gpus_left = 0;  // free GPUs that the request leaves
};

struct DoesNotSuit {
    std::string reason;  // "is cordoned since …"
};

[[nodiscard]] std::variant<Suits, DoesNotSuit> suits(HostSummary const& host,
                                                     PlacementRequest const& request,
                                                     Taken const& taken);

// "network train", "pool rails", or both.
[[nodiscard]] std::string requested_from(FleetReservationSpec const& spec);

}  // namespace vfmgr::fleet
