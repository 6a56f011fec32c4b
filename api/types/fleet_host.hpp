// SPDX-License-Identifier: Apache-2.0
// Hosts of a fleet, as its API shows them, and how one joins. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// joining: no replica has reached it yet. quarantined: what it reports contradicts what the fleet
// knows; it is followed, but nothing new goes there.
enum class FleetHostState { joining, active, quarantined };

// Somebody's word that something is so.
struct Statement {
    Time at{};
    std::string by;  // the principal
    std::string reason;
    bool operator==(Statement const&) const = default;
};

// GPUs that NVSwitches join to a group: a VM that has one of them gets its VFs near these.
struct GpuPartition {
    std::string id;
    std::vector<PciAddress> gpus;
    bool operator==(GpuPartition const&) const = default;
};

// What a replica last observed of the host. Absent: it has not reached it since it started.
struct FleetHostView {
    Time observed_at{};
    std::string version;  // of its vfmgrd
    std::uint32_t pfs = 0;
    std::uint32_t vfs = 0;
    std::uint32_t free_vfs = 0;
    std::uint32_t attachments = 0;
    std::uint32_t vms = 0;
    bool operator==(FleetHostView const&) const = default;
};

struct FleetHost {
    std::string name;        // unique in the fleet; rule_of_fleet_host_names
    std::string url;         // https://host:port
    std::string public_key;  // SHA-256 of the key that its certificate must have, hex
    FleetHostState state = FleetHostState::joining;
    std::string reason{};  // of quarantined
    std::map<std::string, std::string> labels{};
    std::optional<std::string> rack{};
    std::optional<Statement> cordoned{};  // nothing new goes there
    std::optional<Statement> fenced{};    // it is off, says an admin or a fencing agent
    std::optional<Statement> leaving{};   // it is being expelled, and gives up its identities
    std::vector<GpuPartition> partitions{};
    Time joined_at{};
    std::string joined_by;
    // A fact about a connection: never a reason to free anything.
    std::optional<Time> unreachable_since{};
    std::optional<std::string> unreachable_why{};
    std::optional<FleetHostView> observed{};
    bool operator==(FleetHost const&) const = default;
};

// What an admin changes of a host. Absent members stay; an empty rack or text takes it away.
struct FleetHostPatch {
    std::optional<std::map<std::string, std::string>> labels{};
    std::optional<std::string> rack{};
    std::optional<bool> cordoned{};
    std::optional<std::string> reason{};  // of cordoned
    std::optional<std::vector<GpuPartition>> partitions{};
    bool operator==(FleetHostPatch const&) const = default;
};

// The body of a statement that a host is off.
struct FencedRequest {
    std::string evidence;  // who or what switched it off, and how that is known
    bool operator==(FencedRequest const&) const = default;
};

// --- joining --------------------------------------------------------------------------------

struct JoinTokenRequest {
    std::optional<std::string> host{};  // only a host of this name may join with it
    std::uint32_t expires_in_seconds = 3600;
    bool operator==(JoinTokenRequest const&) const = default;
};

// A join token without its secret.
struct JoinTokenView {
    std::string id;
    std::optional<std::string> host{};
    std::string created_by;
    Time created_at{};
    Time expires_at{};
    bool operator==(JoinTokenView const&) const = default;
};

// The answer that makes a join token, and the only one with the secret.
struct NewJoinToken {
    JoinTokenView view;
    std::string token;
};

// "vfj1.<id>.<secret>.<SHA-256 of the CA's certificate>", all in hex: by the last part a host knows
// the fleet before it sends the secret.
struct JoinToken {
    std::string id;         // 8 digits
    std::string secret;     // 64 digits
    std::string ca_sha256;  // 64 digits

    [[nodiscard]] static Result<JoinToken> parse(std::string_view text);
    bool operator==(JoinToken const&) const = default;
};
[[nodiscard]] std::string to_string(JoinToken const& token);

// What a host sends to become one of the fleet. The token is its credential.
struct JoinRequest {
    std::string token;
    std::string name;
    std::string url;         // where replicas reach the host's API
    std::string public_key;  // SHA-256 of its certificate's key, hex
    bool operator==(JoinRequest const&) const = default;
};

// What it then has to know of the fleet.
struct JoinAnswer {
    std::string fleet;              // UUID
    std::string host;               // its name there
    std::vector<std::string> urls;  // of the replicas that serve now
    std::string ca;                 // PEM
    bool operator==(JoinAnswer const&) const = default;
};

inline constexpr char const* rule_of_fleet_host_names =
    "must be 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends";
[[nodiscard]] bool can_be_a_fleet_hosts(std::string_view name);

extern template struct Json<Statement>;
extern template struct Json<GpuPartition>;
extern template struct Json<FleetHost>;
extern template struct Json<FleetHostPatch>;
extern template struct Json<FencedRequest>;
extern template struct Json<JoinTokenRequest>;
extern template struct Json<JoinTokenView>;
extern template struct Json<NewJoinToken>;
extern template struct Json<JoinRequest>;
extern template struct Json<JoinAnswer>;

}  // namespace vfmgr
