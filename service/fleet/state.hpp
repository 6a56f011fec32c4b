// SPDX-License-Identifier: Apache-2.0
// What is in etcd below the fleet's prefix, as one value that is never changed after it was
// published. Copies are cheap: tables are shared until one of them changes. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/time.hpp"
#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/records.hpp"

namespace vfmgr::fleet {

// A record with the revisions that guard a transaction about it.
template <class T>
struct Stored {
    T record{};
    std::string text{};  // as it is in etcd, for rewritten()
    Revision create_revision = 0;
    Revision mod_revision = 0;
};

// By the part of the key that follows the table's own: "h1" of "hosts/h1", "blue/10.1.0.16" of
// "blocks/address/blue/10.1.0.16".
template <class T>
using Records = std::map<std::string, Stored<T>, std::less<>>;
template <class T>
using Table = std::shared_ptr<Records<T> const>;

struct State {
    Revision revision = 0;  // everything up to it is here
    // When etcd last confirmed that nothing is missing; and, while it does not, since when.
    Time as_of{};
    std::optional<Time> stale_since{};

    std::optional<std::uint32_t> format{};
    std::optional<Stored<FleetRecord>> fleet{};
    std::optional<Stored<LeaderRecord>> leader{};
    std::optional<Stored<IdentitiesRecord>> identities{};
    Table<JoinTokenRecord> join_tokens;
    Table<HostRecord> hosts;
    Table<HostNumberRecord> host_numbers;
    Table<MarkRecord> marks;
    Table<BlockRecord> blocks;
    Table<ClaimRecord> claims;
    Table<ReservationRecord> reservations;
    Table<ReplicaRecord> replicas;
    // Keys whose values this version can't read, with the reason: somebody else wrote there, or a
    // newer version. What they are about is left alone.
    std::map<std::string, std::string, std::less<>> unreadable{};

    State();  // tables are never null
};

// Returns the state after these changes, in their order. Keys of no table are ignored: a newer
// version has tables that this one does not know.
[[nodiscard]] State with_changes(State state, std::vector<KeyChange> const& changes);

// nullptr: there is none of that name.
template <class T>
[[nodiscard]] Stored<T> const* find_record(Table<T> const& table, std::string_view name) {
    auto const found = table->find(name);
    return found == table->end() ? nullptr : &found->second;
}

// --- keys, without the prefix ---------------------------------------------------------------

namespace keys {
inline constexpr std::string_view format = "format";
inline constexpr std::string_view fleet = "fleet";
inline constexpr std::string_view leader = "election/scheduler";
inline constexpr std::string_view identities = "identities";
inline constexpr std::string_view join_tokens = "join-tokens/";
inline constexpr std::string_view hosts = "hosts/";
inline constexpr std::string_view host_numbers = "host-numbers/";
inline constexpr std::string_view marks = "marks/";
inline constexpr std::string_view blocks = "blocks/";
inline constexpr std::string_view claims = "claims/";
inline constexpr std::string_view reservations = "reservations/";
inline constexpr std::string_view replicas = "replicas/";
[[nodiscard]] inline std::string of(std::string_view table, std::string_view name) {
    return std::string(table).append(name);
}
}  // namespace keys

}  // namespace vfmgr::fleet
