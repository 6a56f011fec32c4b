// SPDX-License-Identifier: Apache-2.0
// The text of an enumerator, in JSON and on the command line: its name, without the underscore that
// sets it apart from a C++ keyword ("auto_").
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace vfmgr {

template <class E>
using EnumName = std::pair<E, std::string_view>;

namespace enums {

// "ethernet" for LinkLayer::ethernet; empty for a number that is no enumerator. Compilers print the
// first as vfmgr::LinkLayer::ethernet, the second as (vfmgr::LinkLayer)2.
template <auto Value>
consteval std::string_view text() {
    std::string_view name = __PRETTY_FUNCTION__;
    constexpr std::string_view before = "Value = ";
    name = name.substr(name.find(before) + before.size());
    name = name.substr(0, name.find_first_of(";]"));
    name = name.substr(name.find_last_of(":)") + 1);
    if (name.front() >= '0' && name.front() <= '9') return {};
    return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

// A copy, because what compilers print is long, and all of it would end up in the program.
template <auto Value>
inline constexpr auto letters = [] {
    std::array<char, text<Value>().size()> copy{};
    std::ranges::copy(text<Value>(), copy.begin());
    return copy;
}();

template <class E, std::size_t At = 0>
consteval std::size_t count() {
    if constexpr (text<static_cast<E>(At)>().empty())
        return At;
    else
        return count<E, At + 1>();
}

template <class E, std::size_t... At>
consteval std::array<EnumName<E>, sizeof...(At)> names(std::index_sequence<At...>) {
    return {{{static_cast<E>(At), std::string_view(letters<static_cast<E>(At)>.data(),
                                                   letters<static_cast<E>(At)>.size())}...}};
}

}  // namespace enums

// The enumerators, from 0 on, in their order. An enum whose words C++ can't spell ("802.1q")
// specialises it.
template <class E>
inline constexpr auto enum_names = enums::names<E>(std::make_index_sequence<enums::count<E>()>());

template <class E>
[[nodiscard]] constexpr std::string_view enum_name(E value) {
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
