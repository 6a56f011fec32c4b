// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/fleet_identities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vfmgr {
namespace {

auto const& listed(IdentityList const& list, MacAddress const&) {
    return list.macs;
}
auto const& listed(IdentityList const& list, Guid const&) {
    return list.guids;
}
auto const& listed(IdentityList const& list, NetworkAddress const&) {
    return list.addresses;
}

template <class Identity>
bool lists(IdentityList const& list, Identity const& one) {
    auto const& all = listed(list, one);
    return std::ranges::find(all, one) != all.end();
}

template <class T>
bool holds(std::vector<Range<T>> const& ranges, T const& one) {
    return std::ranges::any_of(ranges, [&](Range<T> const& range) { return range.contains(one); });
}

bool in_ranges(Identities const& identities, MacAddress const& mac) {
    return holds(identities.macs, mac);
}
bool in_ranges(Identities const& identities, Guid const& guid) {
    return holds(identities.guids, guid);
}
bool in_ranges(Identities const& identities, NetworkAddress const& address) {
    auto const of =
        std::ranges::find(identities.addresses, address.network, &NetworkRanges::network);
    return of != identities.addresses.end() && holds(of->ranges, address.address);
}

// The fleet leaves addresses of a network without an entry to its hosts.
template <class Identity>
bool is_left_to_host(Identities const&, Identity const&) {
    return false;
}
bool is_left_to_host(Identities const& identities, NetworkAddress const& address) {
    return std::ranges::find(identities.addresses, address.network, &NetworkRanges::network) ==
           identities.addresses.end();
}

// Whether the fleet has given it to this host.
template <class Identity>
bool is_given(Identities const& identities, Identity const& one) {
    if (!identities.generation) return false;
    if (lists(identities.claims, one)) return true;
    return in_ranges(identities, one) && !lists(identities.given_up, one);
}

template <class Identity>
bool is_named_by_right(Identities const& identities, Identity const& one) {
    if (!identities.generation || is_given(identities, one)) return true;
    return is_left_to_host(identities, one) && !lists(identities.given_up, one);
}

template <class Identity>
bool is_free_to_choose(Identities const& identities, Identity const& one) {
    return !lists(identities.given_up, one) && !lists(identities.claims, one);
}

// A VF may have one of those that the fleet has not given this host: what it has not got from here
// is not taken away.
template <class Identity>
bool is_taken_away(Identities const& now, Identities const& wanted, Identity const& one) {
    if (is_named_by_right(wanted, one)) return false;
    return is_given(now, one) || (lists(wanted.given_up, one) && !lists(now.given_up, one));
}

std::string text_of(MacAddress const& mac) {
    return "MAC " + to_string(mac);
}
std::string text_of(Guid const& guid) {
    return "GUID " + to_string(guid);
}
std::string text_of(NetworkAddress const& address) {
    return fmt::format("address {} in network {}", to_string(address.address), address.network);
}

template <class Identity>
Result<void> require(DesiredState const& desired, Identity const& one) {
    if (is_named_by_right(desired.handed_out.identities, one)) return {};
    return fail(discreetly(
        {Problem::conflict,
         fmt::format("{} is none that {} has given this host to hand out", text_of(one),
                     fleet_name(desired)),
         "leave it out to get one of this host's, or request the attachment of the fleet, which "
         "claims it for this host first"},
        fmt::format("{} is none that this host may hand out", text_of(one)),
        "leave it out to get one"));
}

// What on this host has identities of its own.
struct Holder {
    std::string name;
    std::optional<MacAddress> mac;
    std::vector<Guid> guids;
    std::optional<NetworkAddress> address;
};

Holder holder_of(std::string name, VfSpec const& settings) {
    Holder holder{std::move(name), settings.mac, {}, {}};
    if (settings.node_guid) holder.guids.push_back(*settings.node_guid);
    if (settings.port_guid && settings.port_guid != settings.node_guid)
        holder.guids.push_back(*settings.port_guid);
    return holder;
}

Holder holder_of(std::string name, Attachment const& attachment) {
    auto holder = holder_of(std::move(name), attachment.settings);
    if (attachment.address && attachment.spec.network)
        holder.address = NetworkAddress{*attachment.spec.network, *attachment.address};
    return holder;
}

std::vector<Holder> holders_of(DesiredState const& desired) {
    std::vector<Holder> holders;
    for (auto const& [id, attachment] : desired.attachments)
        holders.push_back(
            holder_of(fmt::format("attachment {} of {}", id, attachment.vm), attachment));
    for (auto const& [vf, quarantine] : desired.quarantine)
        holders.push_back(
            holder_of(fmt::format("VF {} in quarantine", to_string(vf)), quarantine.attachment));
    for (auto const& [pci, pf] : desired.pfs)
        for (auto const& [index, settings] : pf.spec.free_vfs)
            holders.push_back(holder_of(
                fmt::format("the spec of {} for its VF {}", to_string(pci), index), settings));
    return holders;
}

// Calls `visit` with each identity of the holder.
template <class Visit>
void for_each_identity(Holder const& holder, Visit const& visit) {
    if (holder.mac && !holder.mac->zero()) visit(*holder.mac);
    for (auto const& guid : holder.guids)
        if (guid.value != 0) visit(guid);
    if (holder.address) visit(*holder.address);
}

Result<void> check_generation(DesiredState const& desired, Identities const& wanted) {
    auto const& now = desired.handed_out.identities.generation;
    if (!now || (wanted.generation && *wanted.generation > *now)) return {};
    auto const in_force = fmt::format("this host's identities are those of generation {} of {}",
                                      *now, fleet_name(desired));
    if (!wanted.generation)
        return fail(Problem::precondition_failed, in_force + ", and these have none",
                    "change them at the fleet; without it they are this host's own again: vfctl "
                    "fleet leave");
    if (*wanted.generation < *now)
        return fail(Problem::precondition_failed,
                    fmt::format("{}, and these are of generation {}", in_force, *wanted.generation),
                    "send those of the fleet as it is now");
    return fail(Problem::conflict, in_force + ", and these are others of the same generation",
                "send them with the generation that they come from");
}

}  // namespace

std::string fleet_name(DesiredState const& desired) {
    return desired.fleet ? "fleet " + desired.fleet->fleet : "the fleet";
}

Result<void> require_handed_out(DesiredState const& desired, MacAddress const& mac) {
    return require(desired, mac);
}
Result<void> require_handed_out(DesiredState const& desired, Guid const& guid) {
    return require(desired, guid);
}
Result<void> require_handed_out(DesiredState const& desired, NetworkAddress const& address) {
    return require(desired, address);
}

bool may_be_chosen(Identities const& identities, MacAddress const& mac) {
    return is_free_to_choose(identities, mac);
}
bool may_be_chosen(Identities const& identities, Guid const& guid) {
    return is_free_to_choose(identities, guid);
}
bool may_be_chosen(Identities const& identities, NetworkAddress const& address) {
    return is_free_to_choose(identities, address);
}

Result<void> check_identities(DesiredState const& desired, Identities const& wanted,
                              std::vector<VfSpec> const& pledged) {
    auto const& now = desired.handed_out.identities;
    if (wanted == now) return {};
    VFMGR_CHECK(check_generation(desired, wanted));
    auto holders = holders_of(desired);
    for (auto const& settings : pledged)
        holders.push_back(holder_of("a VF that an operation is changing", settings));
    std::vector<std::string> taken;
    for (auto const& holder : holders)
        for_each_identity(holder, [&](auto const& one) {
            if (is_taken_away(now, wanted, one))
                taken.push_back(fmt::format("{} has {}", holder.name, text_of(one)));
        });
    if (taken.empty()) return {};
    return fail(Problem::conflict,
                fmt::format("what is in use here can't be taken away: {}", fmt::join(taken, "; ")),
                "leave these to this host, by a claim or in its ranges, until they are detached");
}

Identities without_fleet(Identities identities) {
    identities.claims = {};
    identities.given_up = {};
    identities.generation.reset();
    return identities;
}

std::vector<std::string> foreign_identities(DesiredState const& desired,
                                            Attachment const& attachment) {
    std::vector<std::string> sentences;
    for_each_identity(holder_of({}, attachment), [&](auto const& one) {
        if (!is_named_by_right(desired.handed_out.identities, one))
            sentences.push_back(fmt::format("{} is foreign: {} has not given it to this host",
                                            text_of(one), fleet_name(desired)));
    });
    return sentences;
}

}  // namespace vfmgr
