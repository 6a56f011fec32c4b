// SPDX-License-Identifier: Apache-2.0
// How fast a stream is sent: bits a second in iproute2's notation, or packets a second. Values;
// pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::stream {

// One packet costs `cost` of what there is `per_second`: its bits and a rate in bit/s, or 1 and a
// rate in packets.
struct Pace {
    std::uint64_t cost = 1;
    std::uint64_t per_second = 1;
    bool operator==(Pace const&) const = default;
};

// As tc(8) reads it: "100Mbit", "2.5gbit", "1gibit", "12.5MBps" (bytes a second), a bare number in
// bit/s; case does not matter. From 1 bit/s to 10 Tbit/s.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);

}  // namespace vfmgr::stream
