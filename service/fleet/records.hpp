// SPDX-License-Identifier: Apache-2.0
// What the fleet keeps in etcd, and its JSON. Every replica may be of another version than the one
// that wrote a record: members that this version does not know are ignored when a record is read,
// and survive when it is written (rewritten()). Nothing here is a secret: of tokens there is the
// SHA-256, of certificates the public part. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/fleet_host.hpp"
#include "api/types/fleet_reservation.hpp"
#include "api/types/identities.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/reservation.hpp"
#include "api/types/time.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

// The version of the keys and records below a prefix. A replica does not serve one that it does not
// know.
inline constexpr std::uint32_t format_version = 1;

struct FormatRecord {
    std::uint32_t format = format_version;
    bool operator==(FormatRecord const&) const = default;
};

struct FleetRecord {
    std::string id;  // UUID; in the certificates of its replicas
    std::string ca;  // PEM: the certificate that signs them
    Time created_at{};
    std::string act;
    bool operator==(FleetRecord const&) const = default;
};

struct JoinTokenRecord {
    std::string sha256;                 // of the secret, hex
    std::optional<std::string> host{};  // only a host of this name may join with it
    std::string created_by;
    Time created_at{};
    Time expires_at{};
    std::string act;
    bool operator==(JoinTokenRecord const&) const = default;
};

struct HostRecord {
    std::uint32_t number = 0;  // small, and never another host's: for positions in event streams
    std::string url;           // https://host:port
    std::string public_key;    // SHA-256 of the key that its certificate must have, hex
    Time joined_at{};
    std::string joined_by;    // the join token's creator
    std::string joined_with;  // the join token's id
    std::string act;          // of the transaction that wrote it last
    FleetHostState state = FleetHostState::joining;
    std::string reason;  // of quarantined, for people
    std::map<std::string, std::string> labels{};
    std::optional<std::string> rack{};
    std::optional<Statement> cordoned{};  // nothing new goes there
    std::optional<Statement> fenced{};    // it is off: whatever it held may run elsewhere
    std::optional<Statement> leaving{};   // it is to give up all identities, and is then expelled
    std::vector<GpuPartition> partitions{};
    bool operator==(HostRecord const&) const = default;
};

// A host's number, which stays taken when the host is expelled: a position in the merged events
// that has it never means another host.
struct HostNumberRecord {
    std::string host;
    bool operator==(HostNumberRecord const&) const = default;
};

// How far a host had got when a replica last acted on what it reported. A host that is behind its
// mark has an older store than it had. Written once a minute at most.
struct MarkRecord {
    std::string store;             // the store's id
    std::uint64_t event = 0;       // number of the latest event
    std::string event_is{};        // as told_apart_by() says of it; empty: not known
    std::uint64_t generation = 0;  // of the identities that it confirmed
    std::string act{};
    bool operator==(MarkRecord const&) const = default;
};

// What the hosts' blocks are cut from.
struct IdentitiesRecord {
    Identities ranges;
    std::string act;
    bool operator==(IdentitiesRecord const&) const = default;
};

// Whose an identity is. `act` is of the transaction that made the record: who lost its answer finds
// it there.
struct BlockRecord {
    std::string first;
    std::string last;  // included
    std::string host;
    std::string public_key;  // the host's, when it got the block
    std::string act;
    Time at{};
    bool operator==(BlockRecord const&) const = default;
};

struct ClaimRecord {
    ClaimState state = ClaimState::held;
    std::string host;        // that has it, or will
    std::string public_key;  // of `host`
    std::string from{};      // that had it; empty: it was in no block
    std::string from_public_key{};
    std::string vm;  // UUID
    std::string act;
    Time at{};
    bool operator==(ClaimRecord const&) const = default;
};

// On which host VFs are kept, and for whom. It is written before the host is asked for them;
// whether the host keeps them, only the host says.
struct ReservationRecord {
    FleetReservationSpec spec;  // with its name
    std::string host;
    std::string rack{};              // of the host, when it was chosen; empty: none
    std::vector<VfsOfPf> pfs{};      // so many VFs of each PF
    std::vector<PciAddress> gpus{};  // that they are near
    std::string reason{};            // why it is that host
    std::string requested_by;
    std::optional<std::string> tenant{};  // whose it is
    Time created_at{};
    Time expires_at{};
    std::string act;
    bool operator==(ReservationRecord const&) const = default;
};

struct ReplicaRecord {
    std::string url;
    std::string version;
    Time started_at{};
    bool operator==(ReplicaRecord const&) const = default;
};

// The scheduler's election: the key's create_revision is the fence.
struct LeaderRecord {
    std::string replica;
    std::string url;
    bool operator==(LeaderRecord const&) const = default;
};

// Returns the record in a value; fails with internal if it is none: another program wrote there.
template <class T>
[[nodiscard]] Result<T> read_record(std::string_view text);
template <class T>
[[nodiscard]] std::string record_text(T const& record);
// Returns the text of `record` with those members of `before` that this version does not know.
template <class T>
[[nodiscard]] std::string rewritten(std::string_view before, T const& record);

}  // namespace vfmgr::fleet

namespace vfmgr {

extern template struct Json<fleet::FormatRecord>;
extern template struct Json<fleet::FleetRecord>;
extern template struct Json<fleet::JoinTokenRecord>;
extern template struct Json<fleet::HostRecord>;
extern template struct Json<fleet::HostNumberRecord>;
extern template struct Json<fleet::MarkRecord>;
extern template struct Json<fleet::IdentitiesRecord>;
extern template struct Json<fleet::BlockRecord>;
extern template struct Json<fleet::ClaimRecord>;
extern template struct Json<fleet::ReservationRecord>;
extern template struct Json<fleet::ReplicaRecord>;
extern template struct Json<fleet::LeaderRecord>;

}  // namespace vfmgr
