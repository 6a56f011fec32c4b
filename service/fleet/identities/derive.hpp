// SPDX-License-Identifier: Apache-2.0
// What a host may hand out, as etcd has it: its blocks and claims, without what is claimed by
// others. A pure function of one snapshot, so any replica can push it, and a late push does no
// harm: the host refuses a generation below the one it has.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/identities.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

struct NetworkAddresses {
    std::string network;
    std::vector<IpAddress> addresses;
    bool operator==(NetworkAddresses const&) const = default;
};

// Single identities, each list ascending.
struct SingleIdentities {
    std::vector<MacAddress> macs;
    std::vector<Guid> guids;
    std::vector<NetworkAddresses> addresses;
    bool operator==(SingleIdentities const&) const = default;
};

// The document of PUT /v1/identities on a host of a fleet.
struct HostIdentities {
    Identities ranges;             // its blocks; neighbours are one range
    SingleIdentities claims;       // of other hosts' blocks, or of none
    SingleIdentities given_up;     // of its own blocks
    std::uint64_t generation = 0;  // the revision of the snapshot
    bool operator==(HostIdentities const&) const = default;
};

[[nodiscard]] HostIdentities desired_identities(Snapshot const& fleet, std::string_view host);

// Whether a host with this document may use it.
[[nodiscard]] bool may_use(HostIdentities const& document, Identity const& identity);

enum class Generation {
    current,  // the host has all of it
    behind,   // push it
    ahead,    // the host has what this etcd never wrote: etcd, or its prefix, was restored
    altered,  // the host has this generation with other contents: not as pushed
};
struct IdentityDifference {
    Generation generation = Generation::current;
    std::vector<std::string> sentences;  // "MAC 52:… is to be given up"
    [[nodiscard]] bool pushes() const { return generation == Generation::behind; }
    // Evidence: nothing new goes to the host until an admin confirms it.
    [[nodiscard]] bool quarantines() const {
        return generation == Generation::ahead || generation == Generation::altered;
    }
};
// `pushed`: the highest generation that the host acknowledged to this fleet, 0 if none is known;
// below it, the host's store was restored: that is `altered`, too.
[[nodiscard]] IdentityDifference difference(HostIdentities const& desired,
                                            HostIdentities const& reported, std::uint64_t pushed);

}  // namespace vfmgr::fleet
