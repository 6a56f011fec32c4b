// SPDX-License-Identifier: Apache-2.0
// The addresses that this host may hand out to VFs. Several hosts of one fabric get ranges that do
// not overlap, so that none hands out another's. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/range.hpp"

namespace vfmgr {

// This host's part of a network that other hosts carry too.
struct NetworkRanges {
    std::string network;
    std::vector<Range<IpAddress>> ranges;
    bool operator==(NetworkRanges const&) const = default;
};

struct NetworkAddress {
    std::string network;
    IpAddress address;
    auto operator<=>(NetworkAddress const&) const = default;
};

// Single ones, each listed once.
struct IdentityList {
    std::vector<MacAddress> macs{};
    std::vector<Guid> guids{};
    std::vector<NetworkAddress> addresses{};
    bool operator==(IdentityList const&) const = default;
};

// Of each kind: none means that vfmgr chooses freely. A request may name any address that nothing
// visible has.
//
// With a generation they are a fleet's: then none of a kind means that there is none to hand out,
// and a request may name only those of the ranges and the claims. Addresses of a network that has
// no entry are chosen and named as without a generation.
struct Identities {
    std::vector<Range<MacAddress>> macs;
    std::vector<Range<Guid>> guids;
    std::vector<NetworkRanges> addresses;
    // This host's besides the ranges, for the VMs that keep them: never chosen, only named. One
    // that is also given up is this host's again.
    IdentityList claims{};
    IdentityList given_up{};                    // in the ranges, and another host's now
    std::optional<std::uint64_t> generation{};  // the fleet's, which only rises
    bool operator==(Identities const&) const = default;
};

// How many of the ranges are neither in use nor claimed nor given up, so that the fleet can add to
// them in time.
struct FreeIdentities {
    struct OfNetwork {
        std::string network;
        std::uint64_t count = 0;
        bool operator==(OfNetwork const&) const = default;
    };
    std::uint64_t macs = 0;
    std::uint64_t guids = 0;
    std::vector<OfNetwork> addresses{};  // of the networks that have ranges, and are on this host
    bool operator==(FreeIdentities const&) const = default;
};

// What GET answers. A PUT may send it back as it is: `free` is then ignored.
struct IdentitiesView {
    Identities identities{};
    std::optional<FreeIdentities> free{};  // absent without a generation
    bool operator==(IdentitiesView const&) const = default;
};

extern template struct Json<Identities>;
extern template struct Json<IdentitiesView>;

}  // namespace vfmgr
