// SPDX-License-Identifier: Apache-2.0
// Cursors: where a list goes on. A cursor names the key of the last item that its client has, so
// items that come or go meanwhile neither repeat nor hide others. It is bound to its list, the path
// with its filters, by a checksum. The checksum finds mistakes and keeps nothing secret: a cursor
// leads to nothing that its list does not show. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/store/row_range.hpp"

namespace vfmgr {

// `list` is the path of the list, with its filters.
[[nodiscard]] std::string make_cursor(std::string_view list, std::string_view key);
// Returns the key in a cursor of that list.
[[nodiscard]] Result<std::string> key_in(std::string_view cursor, std::string_view list);
[[nodiscard]] Error not_a_cursor(std::string_view text);

// The keys of all lists, as text. parse_key() returns nullopt for any other text.
using CreatedAndId = std::pair<std::int64_t, std::string>;  // milliseconds since 1970

[[nodiscard]] inline std::string key_text(std::string const& name) {
    return name;
}
[[nodiscard]] std::string key_text(PciAddress const& pci);
[[nodiscard]] std::string key_text(VfId const& vf);
[[nodiscard]] std::string key_text(RowPlace const& place);
[[nodiscard]] std::string key_text(CreatedAndId const& key);

template <class Key>
[[nodiscard]] std::optional<Key> parse_key(std::string_view text);
template <>
[[nodiscard]] std::optional<std::string> parse_key(std::string_view text);
template <>
[[nodiscard]] std::optional<PciAddress> parse_key(std::string_view text);
template <>
[[nodiscard]] std::optional<VfId> parse_key(std::string_view text);
template <>
[[nodiscard]] std::optional<RowPlace> parse_key(std::string_view text);
template <>
[[nodiscard]] std::optional<CreatedAndId> parse_key(std::string_view text);

}  // namespace vfmgr
