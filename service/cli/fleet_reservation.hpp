// SPDX-License-Identifier: Apache-2.0
// Reservations at a replica of vfmgr-fleetd, which chooses the host. One thread.
#pragma once

#include <string>
#include <vector>

#include "service/cli/connection.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

// What both a host and a fleet are asked for, and what only a fleet is.
struct ReservationArguments {
    std::string pool;
    std::string network;
    std::uint16_t count = 1;
    bool distinct_pfs = false;
    std::uint32_t seconds = 600;

    std::vector<std::string> hosts;
    std::vector<std::string> racks;
    std::vector<std::string> labels;  // KEY=VALUE
    std::string same_rack;
    bool spread = false;
};

// Whether a replica of vfmgr-fleetd answers, and not a host.
[[nodiscard]] Result<bool> is_fleet(Connection const& connection);
// Refuses what only a fleet can be asked for.
[[nodiscard]] Result<void> refuse_places(ReservationArguments const& arguments);

// Reserves, and shows which host was chosen, why, and why not the others. A dry run does the
// latter.
[[nodiscard]] Result<void> reserve_in_fleet(Connection const& connection, Options const& options,
                                            std::string const& name,
                                            ReservationArguments const& arguments);
[[nodiscard]] Result<void> show_in_fleet(Connection const& connection, Options const& options,
                                         std::string const& name);

}  // namespace vfmgr
