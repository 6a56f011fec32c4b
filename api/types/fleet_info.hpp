// SPDX-License-Identifier: Apache-2.0
// What a replica of vfmgr-fleetd says of the fleet itself. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct FleetReplica {
    std::string name;
    std::string url;
    std::string version;
    Time started_at{};
    bool schedules = false;  // it is the one that was elected
    bool operator==(FleetReplica const&) const = default;
};

struct FleetInfo {
    std::string fleet;                     // UUID
    std::string replica;                   // which one answers
    std::string ca_sha256;                 // of the CA's certificate
    std::vector<FleetReplica> replicas{};  // those that are there now
    std::uint32_t hosts = 0;
    std::uint32_t unreachable_hosts = 0;
    std::uint32_t quarantined_hosts = 0;
    std::int64_t revision = 0;  // etcd's, up to which this replica knows everything
    // Since when etcd does not confirm that; and why.
    std::optional<Time> stale_since{};
    std::optional<std::string> stale_why{};
    // What hinders hosts from having the identities that they are to have: sentences. The replica
    // that schedules knows most.
    std::vector<std::string> problems{};
    bool operator==(FleetInfo const&) const = default;
};

extern template struct Json<FleetInfo>;

}  // namespace vfmgr
