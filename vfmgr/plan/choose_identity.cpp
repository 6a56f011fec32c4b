// SPDX-License-Identifier: Apache-2.0
// Identities of VFs: MACs, GUIDs and IP addresses, chosen or checked. None that anything visible
// has is handed out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "api/types/text.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
#include "vfmgr/plan/identity_numbers.hpp"

namespace vfmgr {
namespace {

bool has(VfSpec const& settings, MacAddress const& mac) {
    return settings.mac == mac;
}
bool has(VfSpec const& settings, Guid const& guid) {
    return settings.node_guid == guid || settings.port_guid == guid;
}

// Names another VF that has this MAC or GUID; empty when there is none.
template <class Identity>
std::string vf_with(HostView const& host, DesiredState const& desired, VfId const& vf,
                    Identity const& identity) {
    for (auto const& [id, attachment] : desired.attachments)
        if (has(attachment.settings, identity) && attachment.vf != vf)
            return fmt::format("VF {} attached to {} (attachment {})", to_string(attachment.vf),
                               attachment.vm, id);
    // The VM may still use the address, and a PF that is gone may come back with it.
    for (auto const& [id, quarantine] : desired.quarantine)
        if (has(quarantine.attachment.settings, identity) && id != vf)
            return fmt::format("VF {} in quarantine, last attached to {}", to_string(id),
                               quarantine.attachment.vm);
    for (auto const& [address, pf] : desired.pfs)
        for (auto const& free : pf.spec.free_vfs)
            if (has(free.settings, identity) && VfId{address, free.index} != vf)
                return fmt::format("VF {}, by the spec of its PF",
                                   to_string(VfId{address, free.index}));
    for (auto const& [address, pf] : host.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (has(other.settings, identity) && VfId{address, other.index} != vf)
                return fmt::format("VF {} of {}", other.index, display_name(pf.info));
    return {};
}

std::string pf_or_vf_with(HostView const& host, DesiredState const& desired, VfId const& vf,
                          MacAddress const& mac) {
    for (auto const& [address, pf] : host.kernel.pfs)
        if (pf.info.mac == mac) return fmt::format("PF {}", display_name(pf.info));
    return vf_with(host, desired, vf, mac);
}

// An interface of libvirt's that is this VF is no other owner of its MAC, and neither is the entry
// for a pool in the persistent XML that libvirt took this VF for.
std::string vm_interface_with(HostView const& host, VfState const* vf, MacAddress const& mac) {
    for (auto const& [uuid, vm] : host.hypervisor.vms) {
        auto const has = std::ranges::find(vm.interfaces, mac, &VmInterface::mac);
        bool const is_vf = std::ranges::any_of(vm.interfaces, [&](VmInterface const& one) {
            return vf && one.mac == mac && one.pci == vf->pci;
        });
        if (has != vm.interfaces.end() && !is_vf)
            return fmt::format("an interface of VM {} (type {})", vm.name, has->type);
    }
    return {};
}

// The VF's own netdev goes when vfio-pci takes the VF, and VLAN devices on it go with it.
std::string netdev_with(HostView const& host, VfState const* vf, MacAddress const& mac) {
    if (!host.kernel.network) return {};
    auto const& netdevs = host.kernel.network->netdevs;
    auto const is_vfs = [&](auto const& entry) {
        return vf && (entry.first == vf->ifname || entry.second.pci == vf->pci);
    };
    for (auto const& entry : netdevs) {
        if (entry.second.mac != mac || is_vfs(entry)) continue;
        auto const parent = netdevs.find(entry.second.parent.value_or(""));
        if (parent == netdevs.end() || !is_vfs(*parent))
            return fmt::format("network device {}", entry.first);
    }
    return {};
}

std::string owner_of(HostView const& host, DesiredState const& desired, VfId const& vf,
                     MacAddress const& mac) {
    auto owner = pf_or_vf_with(host, desired, vf, mac);
    auto const* const state = find_vf(host, vf);
    if (owner.empty()) owner = vm_interface_with(host, state, mac);
    if (owner.empty()) owner = netdev_with(host, state, mac);
    return owner;
}

// The VM has an interface that a VF with the same MAC is to take the place of: the guest makes one
// of both (net_failover).
bool awaits_vf_with(HostView const& host, std::string_view vm_uuid, MacAddress const& mac) {
    auto const* const vm = find_vm(host, vm_uuid);
    return vm && std::ranges::any_of(vm->interfaces, [&](VmInterface const& one) {
               return one.standby && one.mac == mac;
           });
}

std::string owner_of(HostView const& host, DesiredState const& desired, VfId const& vf,
                     Guid const& guid) {
    for (auto const& [address, pf] : host.kernel.pfs)
        if (pf.info.identity.guid == guid) return fmt::format("PF {}", display_name(pf.info));
    return vf_with(host, desired, vf, guid);
}

// `owner` names what has the identity; empty when it is free.
Result<void> require_nobodys(std::string const& identity, std::string const& owner) {
    if (owner.empty()) return {};
    auto const remedy = "choose another, or leave it out to get a unique one";
    return fail(discreetly(
        {Problem::conflict, fmt::format("{} is already used by {}", identity, owner), remedy},
        fmt::format("{} is already in use on this host", identity), remedy));
}

// The VM gets the same hash from this PF every time. The caller tries the next `n` while the
// identity is taken.
std::uint64_t identity_hash(VfId const& vf, std::string_view vm_uuid, std::string_view host_seed,
                            unsigned n) {
    return stable_hash(fmt::format("{}/{}/{}/{}", host_seed, vm_uuid, to_string(vf.pf), n));
}

MacAddress mac_of(std::uint64_t number) {
    MacAddress mac;
    for (std::size_t i = mac.octets.size(); i-- > 0; number >>= 8U)
        mac.octets[i] = static_cast<std::uint8_t>(number & 0xff);
    return mac;
}

// Returns number n of all that the ranges hold, counted on from the first, and again from there.
template <class T>
std::uint64_t nth_of(std::vector<Range<T>> const& ranges, std::uint64_t size, std::uint64_t n) {
    n %= size;
    for (auto const& range : ranges) {
        auto const in_range = number_of(range.last) - number_of(range.first) + 1;
        if (n < in_range) return number_of(range.first) + n;
        n -= in_range;
    }
    return number_of(ranges.front().first);
}

// Ranges are bigger than the number of VFs that a host can have, or all of them are tried.
constexpr std::uint64_t tries_max = 1U << 16U;

constexpr auto more_from_fleet =
    "give the fleet more of them: PUT /v1/identities there; it passes them on to its hosts";

// A fleet has given this host no ranges of a kind: it hands out none, whatever is free.
Result<void> require_some(DesiredState const& desired, std::uint64_t size, std::string_view what) {
    if (size > 0 || !desired.handed_out.identities.generation) return {};
    return fail(discreetly(
        {Problem::limit_exceeded,
         fmt::format("{} has given this host no {}s to hand out", fleet_name(desired), what),
         more_from_fleet},
        fmt::format("this host has no {}s to hand out", what),
        "ask an admin of the fleet for more"));
}

Error none_left(DesiredState const& desired, std::string_view what) {
    auto detail = fmt::format("no {} of this host's identities is free", what);
    bool const of_fleet = desired.handed_out.identities.generation.has_value();
    return discreetly({Problem::limit_exceeded, detail,
                       of_fleet ? more_from_fleet : "add a range: vfctl identities set"},
                      detail, "ask an admin of this host for more");
}

}  // namespace

Result<MacAddress> choose_mac(HostView const& host, DesiredState const& desired, VfId const& vf,
                              std::string_view vm_uuid, std::string_view host_seed) {
    auto const& identities = desired.handed_out.identities;
    auto const& ranges = identities.macs;
    auto const size = size_of(ranges);
    VFMGR_CHECK(require_some(desired, size, "MAC"));
    auto const start = identity_hash(vf, vm_uuid, host_seed, 0);
    for (unsigned n = 0; n < tries_max && (size == 0 || n < size); ++n) {
        if (size > 0) {
            auto const mac = mac_of(nth_of(ranges, size, start % size + n));
            if (may_be_chosen(identities, mac) && owner_of(host, desired, vf, mac).empty())
                return mac;
            continue;
        }
        auto hash = identity_hash(vf, vm_uuid, host_seed, n);
        MacAddress mac;
        for (auto& octet : mac.octets) {
            octet = static_cast<std::uint8_t>(hash & 0xff);
            hash >>= 8;
        }
        // Locally administered (bit 1), unicast (bit 0).
        mac.octets[0] = static_cast<std::uint8_t>((mac.octets[0] & 0xfc) | 0x02);
        if (owner_of(host, desired, vf, mac).empty()) return mac;
    }
    return fail(none_left(desired, "MAC"));
}

// Whoever else has the MAC of an interface that awaits the VF collides with that already.
Result<void> check_unique(HostView const& host, DesiredState const& desired, VfId const& vf,
                          std::string_view vm_uuid, MacAddress const& mac) {
    return require_nobodys("MAC " + to_string(mac), awaits_vf_with(host, vm_uuid, mac)
                                                        ? pf_or_vf_with(host, desired, vf, mac)
                                                        : owner_of(host, desired, vf, mac));
}

Result<void> check_mac(HostView const& host, DesiredState const& desired, VfId const& vf,
                       std::string_view vm_uuid, MacAddress const& mac) {
    VFMGR_CHECK(require_handed_out(desired, mac));
    return check_unique(host, desired, vf, vm_uuid, mac);
}

Result<Guid> choose_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                         std::string_view vm_uuid, std::string_view host_seed) {
    constexpr std::uint64_t group = 1ULL << 56U;
    constexpr std::uint64_t local = 1ULL << 57U;
    auto const& identities = desired.handed_out.identities;
    auto const& ranges = identities.guids;
    auto const size = size_of(ranges);
    VFMGR_CHECK(require_some(desired, size, "GUID"));
    auto const start = identity_hash(vf, vm_uuid, host_seed, 0);
    for (unsigned n = 0; n < tries_max && (size == 0 || n < size); ++n) {
        Guid const guid{size > 0 ? nth_of(ranges, size, start % size + n)
                                 : (identity_hash(vf, vm_uuid, host_seed, n) & ~group) | local};
        if (may_be_chosen(identities, guid) && owner_of(host, desired, vf, guid).empty())
            return guid;
    }
    return fail(none_left(desired, "GUID"));
}

Result<void> check_unique(HostView const& host, DesiredState const& desired, VfId const& vf,
                          Guid const& guid) {
    return require_nobodys("GUID " + to_string(guid), owner_of(host, desired, vf, guid));
}

Result<void> check_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                        Guid const& guid) {
    VFMGR_CHECK(require_handed_out(desired, guid));
    return check_unique(host, desired, vf, guid);
}

namespace {

// Attachments by address, those of VFs in quarantine too: their VMs may still use theirs.
std::map<IpAddress, Attachment const*> users_of_addresses(DesiredState const& desired) {
    std::map<IpAddress, Attachment const*> users;
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.address)
            users[*quarantine.attachment.address] = &quarantine.attachment;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.address) users[*attachment.address] = &attachment;
    return users;
}

std::string host_addresses(Network const& network) {
    std::vector<std::string> all;
    for (auto const& on : network.pfs) all.push_back(to_string(on.host_address));
    return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::vector<Range<IpAddress>> ranges_to_hand_out(Identities const& identities,
                                                 Network const& network) {
    std::vector<Range<IpAddress>> all = network.ranges;
    if (all.empty()) all = {{network.prefix.address, network.prefix.last()}};
    auto const mine =
        std::ranges::find(identities.addresses, network.name, &NetworkRanges::network);
    if (mine == identities.addresses.end()) return all;
    std::vector<Range<IpAddress>> both;
    for (auto const& range : all)
        for (auto const& own : mine->ranges)
            if (range.overlaps(own))
                both.push_back({std::max(range.first, own.first), std::min(range.last, own.last)});
    return both;
}

Result<void> check_unique(DesiredState const& desired, Network const& network,
                          IpAddress const& address) {
    if (!can_be_a_vms(network, address))
        return fail(
            discreetly({Problem::conflict,
                        fmt::format("{} can't be a VM's address in network {} ({}, host {})",
                                    to_string(address), network.name, to_string(network.prefix),
                                    host_addresses(network)),
                        "choose another inside the prefix, or leave it out"},
                       fmt::format("{} can't be a VM's address in network {} ({})",
                                   to_string(address), network.name, to_string(network.prefix)),
                       "choose another inside the prefix, or leave it out"));
    auto const users = users_of_addresses(desired);
    auto const user = users.find(address);
    if (user == users.end()) return {};
    return fail(discreetly(
        {Problem::conflict,
         fmt::format("{} is the address of {} (attachment {})", to_string(address),
                     user->second->vm, user->second->id),
         "choose another, or leave it out"},
        fmt::format("{} is already in use in network {}", to_string(address), network.name),
        "choose another, or leave it out"));
}

Result<IpAddress> choose_address(DesiredState const& desired, Network const& network,
                                 std::optional<IpAddress> const& requested) {
    if (requested) {
        VFMGR_CHECK(require_handed_out(desired, NetworkAddress{network.name, *requested}));
        VFMGR_CHECK(check_unique(desired, network, *requested));
        return *requested;
    }
    auto const users = users_of_addresses(desired);
    auto const& identities = desired.handed_out.identities;
    for (auto const& range : ranges_to_hand_out(identities, network))
        for (std::optional address = range.first; address && *address <= range.last;
             address = address->next())
            if (can_be_a_vms(network, *address) && !users.contains(*address) &&
                may_be_chosen(identities, NetworkAddress{network.name, *address}))
                return *address;
    auto detail = fmt::format("network {} ({}) has no free address that this host may hand out",
                              network.name, to_string(network.prefix));
    bool const of_fleet =
        std::ranges::find(identities.addresses, network.name, &NetworkRanges::network) !=
            identities.addresses.end() &&
        identities.generation;
    return fail(discreetly({Problem::limit_exceeded, detail,
                            of_fleet ? more_from_fleet
                                     : "detach a VM, or give the network a larger prefix or "
                                       "another range (vfctl network set, vfctl identities set)"},
                           detail, "detach a VM, or ask an admin of this host for more addresses"));
}

}  // namespace vfmgr
