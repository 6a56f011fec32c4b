// SPDX-License-Identifier: Apache-2.0
// A range of addresses, both ends included: "10.1.0.10-10.1.0.99". A single one is a range, too.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

// T: IpAddress, MacAddress or Guid.
template <class T>
struct Range {
    T first{};
    T last{};

    [[nodiscard]] static Result<Range> parse(std::string_view text) {
        auto const dash = text.find('-');
        VFMGR_TRY(T const first, T::parse(text.substr(0, dash)));
        if (dash == std::string_view::npos) return Range{first, first};
        VFMGR_TRY(T const last, T::parse(text.substr(dash + 1)));
        if (first <= last) return Range{first, last};
        return fail(Problem::invalid_request, fmt::format("{} ends before it begins", text),
                    fmt::format("write {}-{}", to_string(last), to_string(first)));
    }
    [[nodiscard]] bool contains(T const& one) const { return first <= one && one <= last; }
    [[nodiscard]] bool overlaps(Range const& other) const {
        return first <= other.last && other.first <= last;
    }
    bool operator==(Range const&) const = default;
};

template <class T>
[[nodiscard]] std::string to_string(Range<T> const& range) {
    if (range.first == range.last) return to_string(range.first);
    return fmt::format("{}-{}", to_string(range.first), to_string(range.last));
}

}  // namespace vfmgr
