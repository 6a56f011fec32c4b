// SPDX-License-Identifier: Apache-2.0
// A PF: what it is, what is observed of it, and what is desired. Values; any thread.
#include "api/types/pf.hpp"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

template <class T>
bool both(std::optional<T> const& a, std::optional<T> const& b) {
    return a && b;
}

template <class T>
bool differ(std::optional<T> const& a, std::optional<T> const& b) {
    return both(a, b) && *a != *b;
}

void add(std::string& text, char const* name, std::string const& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
}

bool acceptable_serial(std::string_view serial) {
    constexpr std::size_t length_max = 255;  // the limit of VPD
    auto const printable = [](char c) { return c >= ' ' && c <= '~'; };
    return !serial.empty() && serial.size() <= length_max && std::ranges::all_of(serial, printable);
}

}  // namespace

template <class F, Of<PfIdentity> V>
void fields(F& f, V& identity) {
    f.nullable("mac", identity.mac);
    f.nullable("guid", identity.guid);
    f.nullable("serial", identity.serial);
}

bool empty(PfIdentity const& identity) {
    return !identity.mac && !identity.guid && !identity.serial;
}

std::string to_string(PfIdentity const& identity) {
    std::string text;
    if (identity.mac) add(text, "MAC", to_string(*identity.mac));
    if (identity.guid) add(text, "GUID", to_string(*identity.guid));
    if (identity.serial) add(text, "serial", *identity.serial);
    return text.empty() ? "an unknown identity" : text;
}

SamePf same_pf(PfIdentity const& known, PfIdentity const& observed) {
    if (differ(known.mac, observed.mac) || differ(known.guid, observed.guid) ||
        differ(known.serial, observed.serial))
        return SamePf::no;
    return both(known.mac, observed.mac) || both(known.guid, observed.guid) ? SamePf::yes
                                                                            : SamePf::unknown;
}

PfIdentity completed(PfIdentity known, PfIdentity const& observed) {
    auto const same = same_pf(known, observed);
    bool const is_first = empty(known);
    // The identity was read without a driver, so only the card's serial is known.
    bool const one_card = both(known.serial, observed.serial) && !known.mac && !known.guid;
    if (same == SamePf::no || !(same == SamePf::yes || is_first || one_card)) return known;
    if (!known.mac) known.mac = observed.mac;
    if (!known.guid) known.guid = observed.guid;
    if (!known.serial) known.serial = observed.serial;
    return known;
}

void check(JsonReader& reader, PfIdentity const& identity) {
    if (identity.serial && !acceptable_serial(*identity.serial))
        reader.complain("serial", "must be 1 to 255 printable characters");
}

template struct Json<PfIdentity>;

namespace {

// Accepts a single name below /sys/bus/pci/drivers.
bool can_be_a_drivers(std::string_view name) {
    constexpr std::size_t length_max = 63;
    auto const allowed = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    };
    return !name.empty() && name.size() <= length_max && std::ranges::all_of(name, allowed);
}

// Accepts a unicast address, except loopback and the unspecified address.
bool can_be_a_hosts(IpAddress const& address) {
    auto const first = address.octets[0];
    if (address.family == IpAddress::Family::v4) return first != 0 && first != 127 && first < 224;
    auto const below_two = IpPrefix{{IpAddress::Family::v6, {}}, 127};  // :: and ::1
    return first != 0xff && !below_two.contains(address);
}

void check_host_address(JsonReader& reader, Network const& network) {
    auto const& [address, prefix] = std::tie(network.host_address, network.prefix);
    unsigned const host_bits = address.bits() - std::min<unsigned>(prefix.length, address.bits());
    if (!prefix.contains(address))
        reader.complain("host_address", "must be inside the prefix " + to_string(prefix));
    else if (!can_be_a_hosts(address))
        reader.complain("host_address", "must be a unicast address, not loopback");
    else if (host_bits > 1 && address == prefix.address)
        reader.complain("host_address", "must not be the network's own address");
    else if (address == prefix.broadcast())
        reader.complain("host_address", "must not be the prefix's broadcast address");
}

// Two networks in one VLAN share the wire, so an address must belong to only one of them.
void check_networks(JsonReader& reader, std::vector<Network> const& networks) {
    for (std::size_t later = 0; later < networks.size(); ++later) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            auto const& [a, b] = std::tie(networks[earlier], networks[later]);
            if (a.name == b.name)
                reader.complain(fmt::format("networks/{}/name", later),
                                fmt::format("is already the name of networks/{}", earlier));
            if (a.vlan == b.vlan && a.prefix.overlaps(b.prefix))
                reader.complain(
                    fmt::format("networks/{}/prefix", later),
                    fmt::format("overlaps {} of {} in the same VLAN", to_string(a.prefix), a.name));
        }
    }
}

}  // namespace

template <class F, Of<VfioVariant> V>
void fields(F& f, V& variant) {
    f.value("module", variant.module);
    f.nullable("driver", variant.driver);
}

template <class F, Of<PfInfo> V>
void fields(F& f, V& pf) {
    f.value("pci", pf.pci);
    f.value("ifname", pf.ifname);
    f.value("driver", pf.driver);
    f.value("vendor_name", pf.vendor_name);
    f.value("device_name", pf.device_name);
    f.value("link_layer", pf.link_layer);
    f.nullable("mac", pf.mac);
    f.value("total_vfs", pf.total_vfs);
    f.value("num_vfs", pf.num_vfs);
    f.value("mtu", pf.mtu);
    f.value("up", pf.up);
    f.value("carrier", pf.carrier);
    f.nullable("controller", pf.controller);
    f.nullable("numa_node", pf.numa_node);
    f.nullable("rdma_device", pf.rdma_device);
    f.nullable("rdma_driver", pf.rdma_driver);
    f.nullable("vfio_variant", pf.vfio_variant);
    f.nullable("eswitch_mode", pf.eswitch_mode);
    f.defaulted("identity", pf.identity);
}

template <class F, Of<Network> V>
void fields(F& f, V& network) {
    f.value("name", network.name);
    f.maybe("vlan", network.vlan);
    f.value("prefix", network.prefix);
    f.value("host_address", network.host_address);
    f.defaulted("mtu", network.mtu);
    f.defaulted("rdma", network.rdma);
    f.maybe("dscp", network.dscp);
}

template <class F, Of<PfSpec> V>
void fields(F& f, V& spec) {
    f.defaulted("mode", spec.mode);
    f.maybe("num_vfs", spec.num_vfs);
    f.maybe("vf_driver", spec.vf_driver);
    f.defaulted("networks", spec.networks);
}

bool can_be_a_networks(std::string_view name) {
    constexpr std::size_t length_max = 32;
    auto const allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    return !name.empty() && name.size() <= length_max && std::ranges::all_of(name, allowed);
}

std::string display_name(PfInfo const& pf) {
    return pf.ifname.empty() ? to_string(pf.pci) : pf.ifname;
}

Network const* find_network(PfSpec const& spec, std::string_view name) {
    auto const found = std::ranges::find(spec.networks, name, &Network::name);
    return found == spec.networks.end() ? nullptr : &*found;
}

void check(JsonReader& reader, Network const& network) {
    bool const was_read = reader.clean();
    if (was_read) check_host_address(reader, network);
    // The name may be empty because it is missing, which is already reported.
    if ((was_read || !network.name.empty()) && !can_be_a_networks(network.name))
        reader.complain("name", rule_of_network_names);
    if (network.vlan && (*network.vlan < 1 || *network.vlan > 4094))
        reader.complain("vlan", "must be from 1 to 4094; leave it out for untagged");
    if (network.mtu < 1280 || network.mtu > 9216)
        reader.complain("mtu", "must be from 1280 to 9216 bytes");
    if (network.dscp.value_or(0) > dscp_max)
        reader.complain("dscp", "must be from 0 to 63; leave it out for best effort");
}

void check(JsonReader& reader, PfSpec const& spec) {
    constexpr std::size_t networks_max = 64;
    if (spec.vf_driver && !can_be_a_drivers(*spec.vf_driver))
        reader.complain("vf_driver", "must be a driver's name as in /sys/bus/pci/drivers");
    if (spec.networks.size() > networks_max)
        reader.complain("networks", fmt::format("must be at most {}", networks_max));
    else if (reader.clean())
        check_networks(reader, spec.networks);
}

template struct Json<PfInfo>;
template struct Json<Network>;
template struct Json<PfSpec>;

}  // namespace vfmgr
