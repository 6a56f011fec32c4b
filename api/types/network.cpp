// SPDX-License-Identifier: Apache-2.0
#include "api/types/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t network_ranges_max = 64;
constexpr std::size_t network_pfs_max = 64;
constexpr std::uint16_t pkey_max = 0x7fff;

// Accepts a unicast address, except loopback and the unspecified address.
bool can_be_a_hosts(IpAddress const& address) {
    auto const first = address.octets[0];
    if (address.family == IpAddress::Family::v4) return first != 0 && first != 127 && first < 224;
    auto const below_two = IpPrefix{{IpAddress::Family::v6, {}}, 127};  // :: and ::1
    return first != 0xff && !below_two.contains(address);
}

bool is_its_own(IpPrefix const& prefix, IpAddress const& address) {
    unsigned const host_bits = address.bits() - std::min<unsigned>(prefix.length, address.bits());
    return host_bits > 1 && address == prefix.address;
}

void check_host_address(JsonReader& reader, IpPrefix const& prefix, NetworkPf const& on,
                        std::string const& at) {
    auto const& address = on.host_address;
    if (!prefix.contains(address))
        reader.complain(at, "must be inside the prefix " + to_string(prefix));
    else if (!can_be_a_hosts(address))
        reader.complain(at, "must be a unicast address, not loopback");
    else if (is_its_own(prefix, address))
        reader.complain(at, "must not be the network's own address");
    else if (address == prefix.broadcast())
        reader.complain(at, "must not be the prefix's broadcast address");
}

// The host's addresses are told apart by their PF: one address on two of them would be ambiguous.
void check_pfs(JsonReader& reader, Network const& network) {
    auto const& pfs = network.pfs;
    for (std::size_t later = 0; later < pfs.size(); ++later) {
        auto const at = reader.member_of("pfs", later);
        check_host_address(reader, network.prefix, pfs[later], at + "/host_address");
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            if (pfs[earlier].pf == pfs[later].pf)
                reader.complain(at + "/pf", "is already in " + reader.member_of("pfs", earlier));
            if (pfs[earlier].host_address == pfs[later].host_address)
                reader.complain(at + "/host_address",
                                "is already that of " + reader.member_of("pfs", earlier));
        }
    }
}

void check_ranges(JsonReader& reader, Network const& network) {
    auto const& ranges = network.ranges;
    for (std::size_t later = 0; later < ranges.size(); ++later) {
        auto const& range = ranges[later];
        auto const at = reader.member_of("ranges", later);
        if (!network.prefix.contains(range.first) || !network.prefix.contains(range.last))
            reader.complain(at, "must be inside the prefix " + to_string(network.prefix));
        for (std::size_t earlier = 0; earlier < later; ++earlier)
            if (ranges[earlier].overlaps(range))
                reader.complain(at, fmt::format("overlaps {}", to_string(ranges[earlier])));
    }
}

}  // namespace

template <class F, Of<Pkey> V>
void fields(F& f, V& pkey) {
    f.value("key", pkey.key);
    f.defaulted("membership", pkey.membership);
}

template <class F, Of<NetworkPf> V>
void fields(F& f, V& on) {
    f.value("pf", on.pf);
    f.value("host_address", on.host_address);
}

template <class F, Of<Network> V>
void fields(F& f, V& network) {
    f.own_name(network.name);
    f.maybe("vlan", network.vlan);
    f.maybe("pkey", network.pkey);
    f.value("prefix", network.prefix);
    f.defaulted("ranges", network.ranges);
    f.defaulted("mtu", network.mtu);
    f.defaulted("rdma", network.rdma);
    f.maybe("dscp", network.dscp);
    f.defaulted("pfs", network.pfs);
}

std::string to_string(Pkey const& pkey) {
    return fmt::format("0x{:04x}={}", pkey.key, enum_name(pkey.membership));
}

Result<Pkey> parse_pkey(std::string_view text) {
    auto const equals = std::min(text.find('='), text.size());
    auto const digits = text.substr(0, equals);
    auto const value = digits.starts_with("0x") ? parse_digits(digits.substr(2), {16, 1, 4, 0xffff})
                                                : parse_digits(digits, {10, 1, 5, 0xffff});
    auto const membership = equals == text.size()
                                ? std::optional(PkeyMembership::full)
                                : enum_value<PkeyMembership>(text.substr(equals + 1));
    if (value && membership && (*value & pkey_max) != 0)
        return Pkey{static_cast<std::uint16_t>(*value & pkey_max), *membership};
    return fail(
        Problem::invalid_request,
        fmt::format("'{}' is no P_Key: a number from 0x1 to 0x7fff, and =full or =limited", text),
        "write it as 0x0001, or as 0x0001=limited");
}

std::string partition_line(Pkey const& pkey, Guid const& port, std::uint32_t mtu) {
    // IPoIB takes 4 bytes of an InfiniBand packet. OpenSM's default is a group of 2048 bytes; 5 is
    // its number for 4096.
    constexpr std::uint32_t mtu_by_default = 2044;
    return fmt::format("vfmgr-{0:04x}=0x{0:04x},indx0,ipoib{1}:0x{2:016x}={3};", pkey.key,
                       mtu > mtu_by_default ? ",mtu=5" : "", port.value,
                       enum_name(pkey.membership));
}

bool can_be_a_networks(std::string_view name) {
    constexpr std::size_t length_max = 32;
    auto const allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    return !name.empty() && name.size() <= length_max && std::ranges::all_of(name, allowed);
}

IpAddress const* host_address_on(Network const& network, PciAddress const& pf) {
    auto const found = std::ranges::find(network.pfs, pf, &NetworkPf::pf);
    return found == network.pfs.end() ? nullptr : &found->host_address;
}

bool can_be_a_vms(Network const& network, IpAddress const& address) {
    auto const& prefix = network.prefix;
    return prefix.contains(address) && address != prefix.address && address != prefix.broadcast() &&
           std::ranges::find(network.pfs, address, &NetworkPf::host_address) == network.pfs.end();
}

void check(JsonReader& reader, Pkey const& pkey) {
    if (pkey.key < 1 || pkey.key > pkey_max)
        reader.complain("key", "must be from 1 to 32767: the P_Key without its highest bit");
}

void check(JsonReader& reader, Network const& network) {
    if (!network.name.empty() && !can_be_a_networks(network.name))
        reader.complain("name", rule_of_network_names);
    if (network.vlan && (*network.vlan < 1 || *network.vlan > 4094))
        reader.complain("vlan", "must be from 1 to 4094; leave it out for untagged");
    if (network.vlan && network.pkey)
        reader.complain("pkey", "can't be combined with vlan: a network is Ethernet or InfiniBand");
    if (network.mtu < network_mtu_min || network.mtu > network_mtu_max)
        reader.complain("mtu", "must be from 1280 to 9216 bytes");
    if (network.dscp.value_or(0) > dscp_max)
        reader.complain("dscp", "must be from 0 to 63; leave it out for best effort");
    if (network.ranges.size() > network_ranges_max)
        reader.complain("ranges", fmt::format("must be at most {}", network_ranges_max));
    if (network.pfs.size() > network_pfs_max)
        reader.complain("pfs", fmt::format("must be at most {}", network_pfs_max));
    if (reader.clean("prefix", "ranges")) check_ranges(reader, network);
    if (reader.clean("prefix", "pfs")) check_pfs(reader, network);
}

template struct Json<Pkey>;
template struct Json<Network>;

}  // namespace vfmgr
