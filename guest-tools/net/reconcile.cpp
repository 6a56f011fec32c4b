// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/reconcile.hpp"

#include <algorithm>

#include "guest-tools/net/find_vf.hpp"

namespace vfmgr::guest {
namespace {

bool is_as_desired(Configured const& configured, GuestAttachment const& desired,
                   Netdev const& netdev) {
    return configured.mac == desired.mac && configured.ifindex == netdev.ifindex &&
           configured.ifname == netdev.name && configured.address == desired.address &&
           configured.prefix_length == desired.prefix_length && configured.mtu == desired.mtu &&
           configured.complete && netdev.up && netdev.mtu == desired.mtu;
}

}  // namespace

Work compare(std::vector<GuestAttachment> const& desired, std::vector<Configured> const& configured,
             std::vector<Netdev> const& netdevs) {
    Work work;
    for (auto const& attachment : desired) {
        auto const* const netdev = find_vf(netdevs, attachment.mac);
        auto const had =
            std::ranges::find(configured, attachment.attachment, &Configured::attachment);
        bool const known = had != configured.end();
        if (netdev && known && is_as_desired(*had, attachment, *netdev)) {
            work.ready.push_back(attachment);
            continue;
        }
        if (known) work.clean_up.push_back(*had);
        if (netdev)
            work.configure.push_back({attachment, *netdev});
        else
            work.missing.push_back(attachment);
    }
    for (auto const& old : configured)
        if (std::ranges::find(desired, old.attachment, &GuestAttachment::attachment) ==
            desired.end())
            work.clean_up.push_back(old);
    return work;
}

}  // namespace vfmgr::guest
