// SPDX-License-Identifier: Apache-2.0
// What vf-guest has to do, from the host's desired state, what is configured and which netdevs
// exist. Pure.
#pragma once

#include <vector>

#include "guest-tools/net/state.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

struct ToConfigure {
    GuestAttachment attachment;
    Netdev netdev;
    bool operator==(ToConfigure const&) const = default;
};

struct Work {
    std::vector<Configured> clean_up;  // first: an address may move to another attachment
    std::vector<ToConfigure> configure;
    std::vector<GuestAttachment> missing;  // no netdev with their MAC yet
    std::vector<GuestAttachment> ready;    // configured as desired
};

[[nodiscard]] Work compare(std::vector<GuestAttachment> const& desired,
                           std::vector<Configured> const& configured,
                           std::vector<Netdev> const& netdevs);

}  // namespace vfmgr::guest
