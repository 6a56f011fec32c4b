// SPDX-License-Identifier: Apache-2.0
// Builds the parts of a host's documents from texts of items. For .cpp files of this folder.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/types/text.hpp"
#include "service/fleet/inventory/documents.hpp"
#include "service/fleet/inventory/json_slices.hpp"

namespace vfmgr::fleet {

// The key that an item's path has: "0000:01:00.0/2" of a VF.
template <class Key>
[[nodiscard]] std::optional<Key> key_in_path(std::string_view id) {
    if constexpr (std::is_same_v<Key, PciAddress>) {
        auto const pci = PciAddress::parse(id);
        return pci ? std::optional(*pci) : std::nullopt;
    } else if constexpr (std::is_same_v<Key, VfId>) {
        auto const pf = PciAddress::parse(take_until(id, '/').value_or(""));
        auto const index = parse_digits(id, {.max = UINT16_MAX});
        if (!pf || !index) return std::nullopt;
        return VfId{*pf, static_cast<std::uint16_t>(*index)};
    } else {
        return Key(id);
    }
}

template <class Facts>
class PartBuilder {
  public:
    PartBuilder(DocumentLimits const& limits, std::string_view name)
        : limits_(limits), name_(name) {}

    // Returns the item's key; nullopt: it is left out, which was complained about.
    std::optional<KeyOf<Facts>> take(std::string text) {
        if (text.size() > limits_.item_bytes_max) return refuse("an item is too long");
        if (part_.items.size() == limits_.items_max) return refuse("there are too many");
        bytes_ += text.size();
        if (bytes_ > limits_.part_bytes_max) return refuse("all of them are too long");
        auto facts = read_facts<Facts>(text);
        if (!facts) return refuse(facts.error().detail);
        text.shrink_to_fit();
        part_.items.push_back({std::move(text), std::move(*facts)});
        return key_of(part_.items.back().facts);
    }
    [[nodiscard]] Item<Facts>& last() { return part_.items.back(); }
    void drop_last() { part_.items.pop_back(); }
    void complain(std::string_view reason) {
        if (reason_.empty()) reason_ = fmt::format("{}: {}", name_, reason);
    }
    [[nodiscard]] SharedPart<Facts> part(Time at) && {
        auto& items = part_.items;
        std::ranges::sort(items, {}, Part<Facts>::key_of_item);
        auto const same = std::ranges::unique(items, {}, Part<Facts>::key_of_item);
        if (!same.empty()) complain("two items have one key");
        items.erase(same.begin(), same.end());
        items.shrink_to_fit();
        part_.observed_at = at;
        if (!reason_.empty()) part_.incomplete = {reason_, at};
        return std::make_shared<Part<Facts> const>(std::move(part_));
    }

  private:
    std::optional<KeyOf<Facts>> refuse(std::string_view reason) {
        complain(reason);
        return std::nullopt;
    }

    DocumentLimits limits_;
    std::string_view name_;
    std::size_t bytes_ = 0;
    std::string reason_;
    Part<Facts> part_;
};

// Puts the items of `news` in the places of those with their keys. False: something was left out.
template <class Facts>
[[nodiscard]] bool merge(SharedPart<Facts>& part, SharedPart<Facts> const& news,
                         DocumentLimits const& limits, std::string_view name) {
    auto merged = *part;
    merged.observed_at = news->observed_at;
    std::size_t bytes = 0;
    for (auto const& item : merged.items) bytes += item.text.size();
    auto incomplete = news->incomplete;
    for (auto const& item : news->items) {
        auto const at = std::ranges::lower_bound(merged.items, key_of(item.facts), {},
                                                 Part<Facts>::key_of_item);
        bool const known = at != merged.items.end() && key_of(at->facts) == key_of(item.facts);
        bytes += item.text.size();
        bool const fits =
            bytes <= limits.part_bytes_max && (known || merged.items.size() < limits.items_max);
        if (!fits)
            incomplete = {fmt::format("{}: there is too much", name), news->observed_at};
        else if (known)
            *at = item;
        else
            merged.items.insert(at, item);
    }
    bool const all = !incomplete;
    if (!all && !merged.incomplete) merged.incomplete = std::move(incomplete);
    part = std::make_shared<Part<Facts> const>(std::move(merged));
    return all;
}

}  // namespace vfmgr::fleet
