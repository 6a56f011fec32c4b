// SPDX-License-Identifier: Apache-2.0
// IP addresses and prefixes, and the GID a RoCE v2 port derives from an address. Values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

struct IpAddress {
    enum class Family : std::uint8_t { v4, v6 };
    Family family = Family::v4;
    std::array<std::uint8_t, 16> octets{};  // network order; v4: the first four, rest zero

    [[nodiscard]] static Result<IpAddress> parse(std::string_view text);
    [[nodiscard]] unsigned bits() const { return family == Family::v4 ? 32 : 128; }
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
    // Returns host number n of the prefix (0 is the network itself); nullopt outside the prefix.
    [[nodiscard]] std::optional<IpAddress> host(std::uint64_t n) const;
    // Returns the all-ones address of a v4 prefix shorter than /31; nullopt otherwise.
    [[nodiscard]] std::optional<IpAddress> broadcast() const;
    auto operator<=>(IpPrefix const&) const = default;
};

[[nodiscard]] std::string to_string(IpPrefix const& prefix);
// Returns the network of an address: 192.168.100.0/24 for 192.168.100.10 and 24.
[[nodiscard]] IpPrefix network_of(IpAddress const& address, std::uint8_t length);

}  // namespace vfmgr
