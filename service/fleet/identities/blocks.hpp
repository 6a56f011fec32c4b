// SPDX-License-Identifier: Apache-2.0
// Cuts the fleet's ranges into blocks, and says how many of them a host needs. Blocks have fixed
// sizes and are aligned, so that two of them are one or have nothing in common: creating the key of
// the first address, if there is none, is all that keeps hosts apart. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/identities.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

// One kind's ranges, of one network: both ends, included.
struct IdentityRange {
    Identity first;
    Identity last;
};
using IdentityRanges = std::vector<IdentityRange>;

[[nodiscard]] IdentityRanges mac_ranges(Identities const& fleet);
[[nodiscard]] IdentityRanges guid_ranges(Identities const& fleet);
[[nodiscard]] IdentityRanges address_ranges(Identities const& fleet, std::string_view network);

// 64 MACs or GUIDs. Of addresses 16, or the largest power of two of which the ranges have 16
// blocks, so that a small prefix serves more than one host. It changes with the ranges: who writes
// a block compares the revision of the fleet's ranges in the same transaction.
[[nodiscard]] std::uint64_t block_size(IdentityRanges const& ranges);

// Returns a block that overlaps none of `taken`; nullopt: there is none. Where it begins to search
// depends on the host, so that leaders that decide for several hosts at a time rarely collide.
struct FreeBlock {
    Identity first;
    Identity last;
    bool operator==(FreeBlock const&) const = default;
};
[[nodiscard]] std::optional<FreeBlock> next_block(IdentityRanges const& ranges,
                                                  std::vector<Block> const& taken,
                                                  std::string_view host);

// How a host uses one kind of identities.
struct IdentityUse {
    std::uint64_t vfs = 0;        // that can need one: of the kind's link layer, or network
    std::uint64_t attached = 0;   // VFs among them that have theirs
    std::uint64_t in_blocks = 0;  // identities of the host's blocks that no claim has
    std::uint64_t used = 0;       // of those
};
// So many that each free VF finds one, and a quarter of a block is left over: a host goes on
// attaching while the fleet is away. 0: it has enough.
[[nodiscard]] std::uint64_t blocks_missing(IdentityUse const& use, std::uint64_t block_size);

}  // namespace vfmgr::fleet
