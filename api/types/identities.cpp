// SPDX-License-Identifier: Apache-2.0
#include "api/types/identities.hpp"

#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/network.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t identity_ranges_max = 256;

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

template <class F, Of<Identities> V>
void fields(F& f, V& identities) {
    f.defaulted("macs", identities.macs);
    f.defaulted("guids", identities.guids);
    f.defaulted("addresses", identities.addresses);
}

void check(JsonReader& reader, Identities const& identities) {
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

template struct Json<Identities>;

}  // namespace vfmgr
