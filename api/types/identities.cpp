// SPDX-License-Identifier: Apache-2.0
#include "api/types/identities.hpp"

#include <fmt/format.h>

#include <set>
#include <type_traits>

#include "api/types/json.hpp"
#include "api/types/network.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t identity_ranges_max = 256;
constexpr std::size_t identities_listed_max = 2048;  // of a kind, each

template <class T>
void check_apart(JsonReader& reader, std::string const& key, std::vector<Range<T>> const& ranges) {
    if (ranges.size() > identity_ranges_max)
        return reader.complain(key, fmt::format("must be at most {}", identity_ranges_max));
    for (std::size_t later = 0; later < ranges.size(); ++later)
        for (std::size_t earlier = 0; earlier < later; ++earlier)
            if (ranges[earlier].overlaps(ranges[later]))
                reader.complain(reader.member_of(key, later),
                                fmt::format("overlaps {}", to_string(ranges[earlier])));
}

template <class T, class Rule>
void check_listed(JsonReader& reader, std::string const& key, std::vector<T> const& listed,
                  Rule const& wrong) {
    if (listed.size() > identities_listed_max)
        return reader.complain(key, fmt::format("must be at most {}", identities_listed_max));
    std::set<T> before;
    for (std::size_t i = 0; i < listed.size(); ++i)
        if (std::string const rule = wrong(listed[i]); !rule.empty())
            reader.complain(reader.member_of(key, i), rule);
        else if (!before.insert(listed[i]).second)
            reader.complain(reader.member_of(key, i), "is listed twice");
}

// A VF's address: of one device, not of a group, and not none.
bool can_be_a_vfs(MacAddress const& mac) {
    return !mac.multicast() && !mac.zero();
}

}  // namespace

template <class F, Of<NetworkRanges> V>
void fields(F& f, V& of) {
    f.value("network", of.network);
    f.value("ranges", of.ranges);
}

void check(JsonReader& reader, NetworkRanges const& of) {
    if (reader.clean("network") && !can_be_a_networks(of.network))
        reader.complain("network", rule_of_network_names);
    check_apart(reader, "ranges", of.ranges);
}

template <class F, Of<NetworkAddress> V>
void fields(F& f, V& of) {
    f.value("network", of.network);
    f.value("address", of.address);
}

template <class F, Of<IdentityList> V>
void fields(F& f, V& list) {
    f.defaulted("macs", list.macs);
    f.defaulted("guids", list.guids);
    f.defaulted("addresses", list.addresses);
}

void check(JsonReader& reader, IdentityList const& list) {
    check_listed(reader, "macs", list.macs, [](MacAddress const& mac) {
        return can_be_a_vfs(mac) ? "" : "must be a unicast MAC, and not zero";
    });
    check_listed(reader, "guids", list.guids,
                 [](Guid const& guid) { return guid.value != 0 ? "" : "must not be zero"; });
    check_listed(reader, "addresses", list.addresses, [](NetworkAddress const& of) {
        return can_be_a_networks(of.network) ? "" : rule_of_network_names;
    });
}

// Left out when nothing is in it, so that a host of no fleet shows what it always did.
template <class F, class V>
void listed(F& f, char const* key, V& list) {
    std::optional<IdentityList> given;
    if constexpr (std::is_const_v<V>)
        if (list != IdentityList{}) given = list;
    f.maybe(key, given);
    if constexpr (!std::is_const_v<V>) list = given.value_or(IdentityList{});
}

template <class F, Of<Identities> V>
void fields(F& f, V& identities) {
    f.defaulted("macs", identities.macs);
    f.defaulted("guids", identities.guids);
    f.defaulted("addresses", identities.addresses);
    listed(f, "claims", identities.claims);
    listed(f, "given_up", identities.given_up);
    f.maybe("generation", identities.generation);
}

template <class F, Of<FreeIdentities::OfNetwork> V>
void fields(F& f, V& of) {
    f.value("network", of.network);
    f.value("count", of.count);
}

void check(JsonReader& reader, FreeIdentities::OfNetwork const& of) {
    if (reader.clean("network") && !can_be_a_networks(of.network))
        reader.complain("network", rule_of_network_names);
}

template <class F, Of<FreeIdentities> V>
void fields(F& f, V& free) {
    f.value("macs", free.macs);
    f.value("guids", free.guids);
    f.value("addresses", free.addresses);
}

template <class F, Of<IdentitiesView> V>
void fields(F& f, V& view) {
    f.members_of(view.identities);
    f.maybe("free", view.free);
}

void check(JsonReader& reader, Identities const& identities) {
    if (!identities.generation)
        for (auto const& [key, list] :
             {std::pair{"claims", &identities.claims}, std::pair{"given_up", &identities.given_up}})
            if (*list != IdentityList{}) reader.complain(key, "requires a generation");
    check_apart(reader, "macs", identities.macs);
    check_apart(reader, "guids", identities.guids);
    // Only the first octet tells a group, so a range that begins and ends in one octet is of
    // devices, or of groups.
    for (std::size_t i = 0; i < identities.macs.size(); ++i) {
        auto const& [first, last] = identities.macs[i];
        if (!can_be_a_vfs(first) || first.octets[0] != last.octets[0])
            reader.complain(reader.member_of("macs", i),
                            "must be of unicast MACs with one first octet, and not zero");
    }
    for (std::size_t i = 0; i < identities.guids.size(); ++i)
        if (identities.guids[i].first.value == 0)
            reader.complain(reader.member_of("guids", i), "must not contain zero");
    if (identities.addresses.size() > identity_ranges_max)
        reader.complain("addresses", fmt::format("must be at most {}", identity_ranges_max));
    for (std::size_t later = 0; later < identities.addresses.size(); ++later)
        for (std::size_t earlier = 0; earlier < later; ++earlier)
            if (identities.addresses[earlier].network == identities.addresses[later].network)
                reader.complain(reader.member_of("addresses", later) + "/network",
                                "is already that of " + reader.member_of("addresses", earlier));
}

template struct Json<IdentityList>;
template struct Json<Identities>;
template struct Json<IdentitiesView>;

}  // namespace vfmgr
