// SPDX-License-Identifier: Apache-2.0
// An address that one host of the fleet at most may use, and the two records that say which host
// that is: blocks, which hosts choose from, and claims, for single ones that left their block.
// Values; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/fleet_identities.hpp"
#include "api/types/time.hpp"

namespace vfmgr::fleet {

using vfmgr::IdentityKind;  // in the order of Identity::value

struct Identity {
    std::string network{};  // of an address; of others empty
    std::variant<MacAddress, Guid, IpAddress> value;
    auto operator<=>(Identity const&) const = default;
};

[[nodiscard]] IdentityKind kind_of(Identity const& identity);
[[nodiscard]] std::string to_string(Identity const& identity);  // the address alone
// "MAC 52:54:00:00:00:01", "address 10.0.0.7 of network train"
[[nodiscard]] std::string described(Identity const& identity);

// Addresses as numbers, for blocks: the last 64 bits. Both ends of a block have the others alike.
[[nodiscard]] std::uint64_t low_bits(Identity const& identity);
[[nodiscard]] Identity with_low_bits(Identity identity, std::uint64_t low);
// True if they are of one kind and network, and differ in their last 64 bits at most.
[[nodiscard]] bool comparable(Identity const& one, Identity const& other);

// Keys below the fleet's prefix: "blocks/mac/52:54:00:00:01:00", "claims/address/train/10.0.0.7".
[[nodiscard]] std::string block_key(Identity const& first);
[[nodiscard]] std::string claim_key(Identity const& identity);

// blocks/…: written once; never changed, and only deleted when its host gave all of it up.
struct Block {
    Identity first;
    Identity last;  // included
    std::string host;
    std::string public_key;  // of the host, when it got the block
    Time at{};
    [[nodiscard]] bool contains(Identity const& identity) const {
        return comparable(first, identity) && first.value <= identity.value &&
               identity.value <= last.value;
    }
    bool operator==(Block const&) const = default;
};

// giving_up: `from` must give it up; until that is known nobody may have it but `from`.
// given_up: `from` gave it up durably; nobody may have it.
// held: `host` has it, and nobody else.
enum class ClaimState { giving_up, given_up, held };

// claims/…: an identity that is not with the host whose block it is in, or is on its way.
struct Claim {
    Identity identity;
    ClaimState state = ClaimState::held;
    std::string host;  // that has it, or will; empty: nobody will, it is released
    std::string from;  // that had it; with `held` a record of where it came from
    std::string vm;    // UUID of the VM that it belongs to
    std::string act;   // of the transaction that wrote this
    Time at{};
    std::string public_key;       // of `host`
    std::string from_public_key;  // of `from`
    bool operator==(Claim const&) const = default;
};

// A consistent snapshot of etcd, as far as it concerns identities.
struct Snapshot {
    std::uint64_t revision = 0;
    struct KeptBlock {
        Block block;
        std::uint64_t revision = 0;  // of its last change
    };
    struct KeptClaim {
        Claim claim;
        std::uint64_t revision = 0;  // of its last change
    };
    std::vector<KeptBlock> blocks;  // in any order; they never overlap
    std::vector<KeptClaim> claims;
};

// nullptr: none. Valid as long as the snapshot.
[[nodiscard]] Snapshot::KeptBlock const* block_of(Snapshot const& fleet, Identity const& identity);
[[nodiscard]] Snapshot::KeptClaim const* claim_of(Snapshot const& fleet, Identity const& identity);

}  // namespace vfmgr::fleet
