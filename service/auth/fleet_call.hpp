// SPDX-License-Identifier: Apache-2.0
// What a fleet's replica may do on a host, and what it says of a request that it passes on. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "service/auth/authenticate.hpp"

namespace vfmgr {

struct FleetCall {
    Principal who;                       // whose request it is
    std::optional<std::uint64_t> fence;  // of the scheduler that makes it; absent: none does
};

// Judges a request by the headers Vfmgr-On-Behalf-Of and Vfmgr-Fence. One on behalf of a client of
// the fleet is that client's: with the lesser of the two roles, of its tenant, which must be one of
// this host's. invalid_request: a header can't be read, or is none of a replica's.
[[nodiscard]] Result<FleetCall> fleet_call(Principal sent_by,
                                           std::map<std::string, std::string> const& headers,
                                           Tenants const& tenants);

// Whether the request is a replica's own: nobody else has a limit of changes as high.
[[nodiscard]] bool is_replica_itself(Principal const& who);

// Refuses routes by which whoever holds a fleet could get more of a host than the host's admin gave
// it, or outlive its membership: tokens, sessions, the audit, the membership itself, and firmware.
// Clients whose requests it passes on are refused there, too.
[[nodiscard]] Result<void> open_to_fleet(Principal const& who, std::string_view method,
                                         std::string_view path);

}  // namespace vfmgr
