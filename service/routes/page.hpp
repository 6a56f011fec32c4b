// SPDX-License-Identifier: Apache-2.0
// Pages: how every list of the API is cut and filtered. A list has an order by keys that never
// change; a request names the page's size (?limit=) and where it goes on (?cursor=), and the answer
// names where the next page begins: {"items": […], "next": …}. Include api/types/json.hpp with it.
// Pure functions; any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "service/routes/cursor.hpp"
#include "service/routes/dispatch.hpp"

namespace vfmgr {

template <class Key>
struct Page {
    std::uint32_t limit = 0;
    std::optional<Key> after{};  // the last item that the client has; absent: from the start on
};

// Returns the parameters of a list: those of pages, and its own filters.
[[nodiscard]] std::vector<std::string> list_parameters(std::vector<std::string> filters = {});
// The list that a call asks for: its path, with its filters.
[[nodiscard]] std::string list_of(Call const& call);

[[nodiscard]] Result<Page<std::string>> page_of(Call const& call);
template <class Key>
[[nodiscard]] Result<Page<Key>> page_by(Call const& call) {
    VFMGR_TRY(auto const page, page_of(call));
    if (!page.after) return Page<Key>{page.limit, {}};
    auto key = parse_key<Key>(*page.after);
    if (!key) return fail(not_a_cursor(call.request.query.at("cursor")));
    return Page<Key>{page.limit, std::move(key)};
}
// The page of a list in the store.
[[nodiscard]] Result<RowRange> range_of(Call const& call);

// Answers with a page's items. `last` is the key of the last one, if more follow it.
template <class T, class Key>
[[nodiscard]] http::Response page_response(Call const& call, std::vector<T> items,
                                           std::optional<Key> const& last) {
    ItemList<T> page{std::move(items)};
    if (last) page.next = make_cursor(list_of(call), key_text(*last));
    return json_response(200, page);
}

// Answers with a page of `all`, which is in the order of its keys. `item_of` returns an element's
// item, or nullopt if a filter excludes it.
template <class All, class KeyOf, class ItemOf>
[[nodiscard]] Result<http::Response> page_of_all(Call const& call, All const& all, KeyOf key_of,
                                                 ItemOf item_of) {
    using Element = std::ranges::range_reference_t<All const>;
    using Key = std::remove_cvref_t<std::invoke_result_t<KeyOf&, Element>>;
    using Item = typename std::invoke_result_t<ItemOf&, Element>::value_type;
    VFMGR_TRY(auto const page, page_by<Key>(call));
    auto at = std::ranges::begin(all);
    if (page.after) at = std::ranges::upper_bound(all, *page.after, {}, key_of);
    std::vector<Item> items;
    std::optional<Key> last;
    for (; at != std::ranges::end(all); ++at) {
        auto item = item_of(*at);
        if (!item) continue;
        if (items.size() == page.limit) return page_response(call, std::move(items), last);
        items.push_back(std::move(*item));
        last = std::invoke(key_of, *at);
    }
    return page_response(call, std::move(items), std::optional<Key>());
}

// Filters match exactly. Each returns nullopt or an empty text when the call does not have it.
[[nodiscard]] Result<std::string> text_filter(Call const& call, std::string const& name);
[[nodiscard]] Result<std::optional<PciAddress>> pf_filter(Call const& call);
[[nodiscard]] Error not_a_choice(std::string const& name, std::string_view given,
                                 std::string const& choices);
template <class E>
[[nodiscard]] Result<std::optional<E>> choice_filter(Call const& call, std::string const& name) {
    auto const given = call.request.query.find(name);
    if (given == call.request.query.end()) return std::nullopt;
    auto const value = enum_value<E>(given->second);
    if (!value) return fail(not_a_choice(name, given->second, enum_choices<E>()));
    return value;
}

}  // namespace vfmgr
