// SPDX-License-Identifier: Apache-2.0
// The addresses that this host may hand out to VFs. Several hosts of one fabric get ranges that do
// not overlap, so that none hands out another's. Values; any thread.
#pragma once

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

// Of each kind: none means that vfmgr chooses freely. A request may name any address that nothing
// visible has.
struct Identities {
    std::vector<Range<MacAddress>> macs;
    std::vector<Range<Guid>> guids;
    std::vector<NetworkRanges> addresses;
    bool operator==(Identities const&) const = default;
};

extern template struct Json<Identities>;

}  // namespace vfmgr
