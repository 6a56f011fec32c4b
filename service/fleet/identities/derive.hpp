// SPDX-License-Identifier: Apache-2.0
// What a host may hand out, as etcd has it: its blocks and claims, without what is claimed by
// others. A pure function of one snapshot, so any replica can push it, and a late push does no
// harm: the host refuses a generation below the one it has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types/identities.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

// The document of PUT /v1/identities on a host of a fleet: its blocks as ranges, of which
// neighbours are one; as claims what it has besides, and what it is to choose for nobody; as given
// up what others have of its blocks. The generation is the snapshot's revision.
[[nodiscard]] Identities desired_identities(Snapshot const& fleet, std::string_view host);

// Whether a host with this document may use it.
[[nodiscard]] bool may_use(Identities const& document, Identity const& identity);

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
// below it, the host's store was restored: that is `altered`, too. A document without a generation
// was never the fleet's, and is `behind` whatever it says.
[[nodiscard]] IdentityDifference difference(Identities const& desired, Identities const& reported,
                                            std::uint64_t pushed);

}  // namespace vfmgr::fleet
