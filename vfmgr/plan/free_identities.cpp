// SPDX-License-Identifier: Apache-2.0
// How many identities of a fleet's ranges a host still has, by which the fleet adds to them.
#include <algorithm>
#include <set>

#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
#include "vfmgr/plan/identity_numbers.hpp"

namespace vfmgr {
namespace {

struct InUse {
    std::set<MacAddress> macs;
    std::set<Guid> guids;
    std::set<IpAddress> addresses;
};

void add(InUse& used, VfSpec const& settings) {
    if (settings.mac) used.macs.insert(*settings.mac);
    for (auto const& guid : {settings.node_guid, settings.port_guid})
        if (guid) used.guids.insert(*guid);
}

void add(InUse& used, Attachment const& attachment) {
    add(used, attachment.settings);
    if (attachment.address) used.addresses.insert(*attachment.address);
}

void add(InUse& used, IdentityList const& list) {
    used.macs.insert(list.macs.begin(), list.macs.end());
    used.guids.insert(list.guids.begin(), list.guids.end());
}

// All that is not chosen, as choose_mac() and the others have it.
InUse in_use(HostView const& host, DesiredState const& desired) {
    InUse used;
    for (auto const& [id, attachment] : desired.attachments) add(used, attachment);
    for (auto const& [vf, quarantine] : desired.quarantine) add(used, quarantine.attachment);
    for (auto const& [pci, pf] : desired.pfs)
        for (auto const& free : pf.spec.free_vfs) add(used, free.settings);
    for (auto const& [pci, pf] : host.kernel.pfs) {
        if (pf.info.mac) used.macs.insert(*pf.info.mac);
        if (pf.info.identity.guid) used.guids.insert(*pf.info.identity.guid);
        for (auto const& vf : pf.vfs) add(used, vf.settings);
    }
    for (auto const& [uuid, vm] : host.hypervisor.vms)
        for (auto const& interface : vm.interfaces) used.macs.insert(interface.mac);
    if (host.kernel.network)
        for (auto const& [name, netdev] : host.kernel.network->netdevs)
            if (netdev.mac) used.macs.insert(*netdev.mac);
    add(used, desired.handed_out.identities.claims);
    add(used, desired.handed_out.identities.given_up);
    return used;
}

template <class T>
std::uint64_t left_of(std::vector<Range<T>> const& ranges, std::set<T> const& used) {
    auto const taken = std::ranges::count_if(used, [&](T const& one) {
        return std::ranges::any_of(ranges,
                                   [&](Range<T> const& range) { return range.contains(one); });
    });
    return size_of(ranges) - static_cast<std::uint64_t>(taken);
}

// At most UINT64_MAX, which is more than a host has VFs.
std::uint64_t size_of(Range<IpAddress> const& range) {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    auto const bytes = range.first.bits() / 8;
    unsigned borrow = 0;
    for (unsigned i = bytes; i-- > 0;) {
        unsigned const octet = 256U + range.last.octets[i] - range.first.octets[i] - borrow;
        borrow = octet < 256U ? 1 : 0;
        unsigned const place = bytes - 1 - i;
        (place < 8 ? low : high) |= static_cast<std::uint64_t>(octet & 0xffU) << place % 8 * 8;
    }
    return high != 0 || low == UINT64_MAX ? UINT64_MAX : low + 1;
}

std::uint64_t left_of(Identities const& identities, Network const& network,
                      std::vector<Range<IpAddress>> const& ranges, std::set<IpAddress> used) {
    for (auto const* const list : {&identities.claims, &identities.given_up})
        for (auto const& [of, address] : list->addresses)
            if (of == network.name) used.insert(address);
    used.insert(network.prefix.address);
    if (auto const broadcast = network.prefix.broadcast()) used.insert(*broadcast);
    for (auto const& on : network.pfs) used.insert(on.host_address);
    std::uint64_t left = 0;
    for (auto const& range : ranges) {
        auto const size = size_of(range);
        auto const taken = static_cast<std::uint64_t>(
            std::ranges::count_if(used, [&](IpAddress const& one) { return range.contains(one); }));
        left = size > UINT64_MAX - left ? UINT64_MAX : left + size - std::min(taken, size);
    }
    return left;
}

}  // namespace

std::optional<FreeIdentities> free_identities(HostView const& host, DesiredState const& desired) {
    auto const& identities = desired.handed_out.identities;
    if (!identities.generation) return std::nullopt;
    auto const used = in_use(host, desired);
    FreeIdentities free{
        left_of(identities.macs, used.macs), left_of(identities.guids, used.guids), {}};
    for (auto const& [name, ranges] : identities.addresses)
        if (auto const* const network = find_network(desired.networks, name))
            free.addresses.push_back(
                {name, left_of(identities, *network, ranges_to_hand_out(identities, *network),
                               used.addresses)});
    return free;
}

}  // namespace vfmgr
