// SPDX-License-Identifier: Apache-2.0
// Addresses, as iproute2 and lspci write them: of network interfaces, PCI functions, hosts. Values;
// any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// The link layer of a NIC's port.

enum class LinkLayer { ethernet, infiniband };

// An Ethernet address. A value.

struct MacAddress {
    std::array<std::uint8_t, 6> octets{};

    // Accepts six hex octets separated by ':' or '-'.
    [[nodiscard]] static Result<MacAddress> parse(std::string_view text);
    [[nodiscard]] bool multicast() const { return (octets[0] & 1) != 0; }
    [[nodiscard]] bool zero() const {
        return (octets[0] | octets[1] | octets[2] | octets[3] | octets[4] | octets[5]) == 0;
    }
    auto operator<=>(MacAddress const&) const = default;
};

[[nodiscard]] std::string to_string(MacAddress const& mac);

// An InfiniBand EUI-64, printed as iproute2 does: 24:8a:07:03:00:8d:ae:2e. A value.

struct Guid {
    std::uint64_t value = 0;

    // Accepts eight octets with ':', 0x and 16 digits, or ibstat's 248a:0703:008d:ae2e.
    [[nodiscard]] static Result<Guid> parse(std::string_view text);
    auto operator<=>(Guid const&) const = default;
};

[[nodiscard]] std::string to_string(Guid const& guid);

// The VLAN tag that the NIC puts on a VF's frames. A value; field names follow iproute2.

enum class VlanProtocol { dot1q, dot1ad };
template <>
inline constexpr std::array<EnumName<VlanProtocol>, 2> enum_names<VlanProtocol> = {
    {{VlanProtocol::dot1q, "802.1q"}, {VlanProtocol::dot1ad, "802.1ad"}}};

// id 0 means "set to no tag"; an absent Vlan means "leave alone".
struct Vlan {
    std::uint16_t id = 0;  // 0..4094
    std::uint8_t qos = 0;  // 0..7, the PCP
    VlanProtocol proto = VlanProtocol::dot1q;
    auto operator<=>(Vlan const&) const = default;
};

extern template struct Json<Vlan>;
void append_json(std::string& text, Vlan const& vlan);

// A PCI function, 0000:3b:00.2, as the kernel names it in /sys/bus/pci/devices. A value.

struct PciAddress {
    std::uint32_t domain = 0;  // 16 bits on most machines, 32 behind VMD
    std::uint8_t bus = 0;
    std::uint8_t device = 0;  // 0..31; always 0 with ARI
    std::uint8_t function = 0;

    // Accepts "0000:3b:00.2"; the domain may be omitted.
    [[nodiscard]] static Result<PciAddress> parse(std::string_view text);
    auto operator<=>(PciAddress const&) const = default;
};

[[nodiscard]] std::string to_string(PciAddress const& address);

// One VF: its PF and its number under it (sysfs virtfnN). The VF's own PCI address may change with
// the number of VFs, so it never identifies the VF (vfmgr/kernel/KERNEL.md#vf-addresses).
struct VfId {
    PciAddress pf;
    std::uint16_t index = 0;
    auto operator<=>(VfId const&) const = default;
};

[[nodiscard]] std::string to_string(VfId const& vf);  // "0000:3b:00.0/2"

extern template struct Json<VfId>;  // {"pf": "0000:3b:00.0", "index": 2}

// IP addresses and prefixes, and the GID a RoCE v2 port derives from an address. Values.

struct IpAddress {
    enum class Family : std::uint8_t { v4, v6 };
    Family family = Family::v4;
    std::array<std::uint8_t, 16> octets{};  // network order; v4: the first four, rest zero

    [[nodiscard]] static Result<IpAddress> parse(std::string_view text);
    [[nodiscard]] unsigned bits() const { return family == Family::v4 ? 32 : 128; }
    // Returns the address after this one; nullopt: this is the last of its family.
    [[nodiscard]] std::optional<IpAddress> next() const;
    // Returns the RoCE v2 GID: the v6 address itself, or ::ffff:a.b.c.d for v4.
    [[nodiscard]] std::array<std::uint8_t, 16> gid() const;
    auto operator<=>(IpAddress const&) const = default;
};

[[nodiscard]] std::string to_string(IpAddress const& address);

// 192.168.100.0/24. Bits beyond the length are zero: parse() refuses 192.168.100.3/24.
struct IpPrefix {
    IpAddress address;
    std::uint8_t length = 0;

    [[nodiscard]] static Result<IpPrefix> parse(std::string_view text);
    [[nodiscard]] bool contains(IpAddress const& other) const;
    [[nodiscard]] bool overlaps(IpPrefix const& other) const;
    [[nodiscard]] IpAddress last() const;  // all of its host bits are one
    // Returns the all-ones address of a v4 prefix shorter than /31; nullopt otherwise.
    [[nodiscard]] std::optional<IpAddress> broadcast() const;
    auto operator<=>(IpPrefix const&) const = default;
};

[[nodiscard]] std::string to_string(IpPrefix const& prefix);
// Returns the network of an address: 192.168.100.0/24 for 192.168.100.10 and 24.
[[nodiscard]] IpPrefix network_of(IpAddress const& address, std::uint8_t length);

// Where a server is: "10.0.0.1:8473", "host", "[::1]:8473". A value.

struct HostPort {
    std::string host;  // without brackets
    std::uint16_t port = 0;
    bool operator==(HostPort const&) const = default;
};

[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text,
                                                      std::uint16_t default_port);
// Reads "https://host:8470": nothing follows the port, not even a slash.
[[nodiscard]] std::optional<HostPort> parse_https_url(std::string_view url,
                                                      std::uint16_t default_port);
// Accepts a name or an address. Refuses text with a special meaning in a URL or a Host header.
[[nodiscard]] bool valid_host(std::string_view host);
[[nodiscard]] std::string to_string(HostPort const& place);

}  // namespace vfmgr
