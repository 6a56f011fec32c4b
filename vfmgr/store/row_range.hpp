// SPDX-License-Identifier: Apache-2.0
// Parts of lists that are newest first. Values; any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace vfmgr {

// A row's place in a list that is newest first: by time, then by number. It keeps its place for as
// long as it exists, so a list goes on from there whatever came and went meanwhile.
struct RowPlace {
    std::int64_t at_ms = 0;  // 0 in lists that are by number alone
    std::int64_t number = 0;
    auto operator<=>(RowPlace const&) const = default;
};
// A part of such a list: at most `limit` rows, those that follow `after`.
struct RowRange {
    std::size_t limit = SIZE_MAX;
    std::optional<RowPlace> after{};  // absent: from the newest on
};
template <class T>
struct Rows {
    std::vector<T> items;
    std::optional<RowPlace> next{};  // the place of the last item, if more rows follow it
    bool operator==(Rows const&) const = default;
};

}  // namespace vfmgr
