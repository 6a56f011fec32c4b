// SPDX-License-Identifier: Apache-2.0
// A host's membership of a fleet, which several daemons (vfmgr-fleetd, its replicas) manage
// together; and who a replica's request is for. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/daemon.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct FleetMembership {
    std::string fleet;              // its UUID
    std::string host;               // this host's name in it
    std::vector<std::string> urls;  // of its replicas: "https://fleet1.example:8480"
    std::string ca;                 // PEM: the certificate of the CA that signs its replicas'
    Time joined_at{};
    // When a replica was last here; kept in memory alone, so a restart forgets it.
    std::optional<Time> contacted_at{};
    // The highest that a scheduler of the fleet has shown. Requests of one with a lower number are
    // refused: another has taken its place.
    std::uint64_t fence = 0;
    bool operator==(FleetMembership const&) const = default;
};

// What GET /v1/fleet answers, of a host without a fleet too.
struct FleetView {
    std::optional<FleetMembership> membership{};
    std::string store{};           // the store's own id: no other has it, nor has this one restored
    std::uint64_t last_event = 0;  // the number of the last event in it
    std::optional<Time> restored_at;    // from a backup, and not confirmed since
    std::optional<std::string> note{};  // what follows from that
    // SHA-256 of the key of the certificate that this host's TLS listener shows, hex. Absent: the
    // API is served on no network.
    std::optional<std::string> public_key{};
    bool operator==(FleetView const&) const = default;
};

// Letters, digits, '.', '-' and '_', at most 63: a name of a replica, or of a host in a fleet.
[[nodiscard]] bool can_be_a_fleets(std::string_view name);

// The URI in the certificate of a replica: "vfmgr://<fleet>/replica/<name>".
struct ReplicaName {
    std::string fleet;
    std::string replica;
    bool operator==(ReplicaName const&) const = default;
};
[[nodiscard]] std::optional<ReplicaName> parse_replica_uri(std::string_view uri);
[[nodiscard]] std::string to_uri(ReplicaName const& name);

// A client of the fleet whose request a replica passes on: a header of it, as JSON.
struct OnBehalfOf {
    std::string who;                    // its name there: "token:ab12cd34", "cert:job.example"
    Role role = Role::viewer;           // no more than this
    std::optional<std::string> tenant;  // absent: of none
    bool operator==(OnBehalfOf const&) const = default;
};
inline constexpr auto on_behalf_of_header = "vfmgr-on-behalf-of";
inline constexpr auto fence_header = "vfmgr-fence";
inline constexpr std::size_t on_behalf_of_bytes_max = 1024;
[[nodiscard]] Result<OnBehalfOf> parse_on_behalf_of(std::string_view header);

extern template struct Json<FleetMembership>;
extern template struct Json<FleetView>;
extern template struct Json<OnBehalfOf>;

}  // namespace vfmgr
