// SPDX-License-Identifier: Apache-2.0
// An Ethernet address. A value.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

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

}  // namespace vfmgr
