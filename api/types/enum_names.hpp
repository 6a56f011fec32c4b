// SPDX-License-Identifier: Apache-2.0
// The text of an enumerator, in JSON and on the command line. One table per enum.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace vfmgr {

// Specialised beside each enum: a std::array of {enumerator, lower_snake text}.
template <class E>
inline constexpr std::nullptr_t enum_names = nullptr;

template <class E>
using EnumName = std::pair<E, std::string_view>;

template <class E>
[[nodiscard]] constexpr std::string_view enum_name(E value) {
    // Most tables follow the enum's order.
    auto const at = static_cast<std::size_t>(value);
    if (at < enum_names<E>.size() && enum_names<E>[at].first == value)
        return enum_names<E>[at].second;
    for (auto const& [enumerator, text] : enum_names<E>)
        if (enumerator == value) return text;
    return "invalid";
}

template <class E>
[[nodiscard]] constexpr std::optional<E> enum_value(std::string_view expected) {
    for (auto const& [enumerator, text] : enum_names<E>)
        if (text == expected) return enumerator;
    return std::nullopt;
}

template <class E>
[[nodiscard]] std::string enum_choices() {
    std::string choices;
    for (auto const& [enumerator, text] : enum_names<E>)
        choices += (choices.empty() ? "" : ", ") + std::string(text);
    return choices;
}

}  // namespace vfmgr
