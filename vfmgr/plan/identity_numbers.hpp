// SPDX-License-Identifier: Apache-2.0
// Counts MACs and GUIDs, for what chooses and what counts them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/range.hpp"

namespace vfmgr {

[[nodiscard]] inline std::uint64_t number_of(MacAddress const& mac) {
    std::uint64_t number = 0;
    for (auto const octet : mac.octets) number = number << 8U | octet;
    return number;
}
[[nodiscard]] inline std::uint64_t number_of(Guid const& guid) {
    return guid.value;
}

// Of all that the ranges hold, which are apart. At most UINT64_MAX: none holds zero.
template <class T>
[[nodiscard]] std::uint64_t size_of(std::vector<Range<T>> const& ranges) {
    std::uint64_t size = 0;
    for (auto const& range : ranges) size += number_of(range.last) - number_of(range.first) + 1;
    return size;
}

}  // namespace vfmgr
