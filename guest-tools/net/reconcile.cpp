// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/reconcile.hpp"

#include <algorithm>

#include "guest-tools/net/find_vf.hpp"

namespace vfmgr::guest {
namespace {

bool is_as_wanted(Configured const& configured, GuestAttachment const& wanted,
                  Netdev const& netdev) {
    return configured.mac == wanted.mac && configured.ifindex == netdev.ifindex &&
           configured.ifname == netdev.name && configured.address == wanted.address &&
           configured.prefix_length == wanted.prefix_length && configured.mtu == wanted.mtu &&
           configured.complete && netdev.up && netdev.mtu == wanted.mtu;
}

}  // namespace

Work compare(std::vector<GuestAttachment> const& wanted, std::vector<Configured> const& configured,
             std::vector<Netdev> const& netdevs) {
    Work work;
    for (auto const& attachment : wanted) {
        auto const* const netdev = find_vf(netdevs, attachment.mac);
        auto const had =
            std::ranges::find(configured, attachment.attachment, &Configured::attachment);
        bool const known = had != configured.end();
        if (netdev && known && is_as_wanted(*had, attachment, *netdev)) {
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
        if (std::ranges::find(wanted, old.attachment, &GuestAttachment::attachment) == wanted.end())
            work.clean_up.push_back(old);
    return work;
}

}  // namespace vfmgr::guest
