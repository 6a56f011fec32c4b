// SPDX-License-Identifier: Apache-2.0
// How fast a stream is sent: bits per second in iproute2's notation, or packets per second. Values;
// pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::stream {

// One packet costs `cost` of `per_second`: its bits of a rate in bit/s, or 1 of a rate in packets.
struct Pace {
    std::uint64_t cost = 1;
    std::uint64_t per_second = 1;
    bool operator==(Pace const&) const = default;
};

// Parses tc(8)'s notation: "100Mbit", "2.5gbit", "1gibit", "12.5MBps" (bytes per second), a bare
// number in bit/s; case does not matter. From 1 bit/s to 10 Tbit/s.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);

}  // namespace vfmgr::stream
