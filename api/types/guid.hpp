// SPDX-License-Identifier: Apache-2.0
// An InfiniBand EUI-64, printed as iproute2 does: 24:8a:07:03:00:8d:ae:2e. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

struct Guid {
    std::uint64_t value = 0;

    // Accepts eight octets with ':', 0x and 16 digits, or ibstat's 248a:0703:008d:ae2e.
    [[nodiscard]] static Result<Guid> parse(std::string_view text);
    auto operator<=>(Guid const&) const = default;
};

[[nodiscard]] std::string to_string(Guid const& guid);

}  // namespace vfmgr
