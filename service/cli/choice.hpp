// SPDX-License-Identifier: Apache-2.0
// Values of options: one of some words, such as an enum's names; a number; labels. Pure.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// Fails with invalid_request, which lists all names and where to read more.
template <class E>
[[nodiscard]] Result<E> parse_choice(std::string_view option, std::string_view text,
                                     std::string_view remedy) {
    if (auto const value = enum_value<E>(text)) return *value;
    return fail(Problem::invalid_request,
                fmt::format("{} is one of {}, not '{}'", option, enum_choices<E>(), text),
                std::string(remedy));
}

// Parses all of `text` as a number from `low` to `high`; `what` is for the error's detail.
[[nodiscard]] Result<std::uint32_t> number(std::string_view what, std::string_view text,
                                           std::uint32_t low, std::uint32_t high);

// Parses "KEY=VALUE", each key once; "none" alone: no labels.
[[nodiscard]] Result<std::map<std::string, std::string>> labels_of(
    std::vector<std::string> const& texts);

// For CLI11: accepts these words only. Help lists them, and completion offers them.
[[nodiscard]] inline CLI::Validator one_of(std::vector<std::string> const& words) {
    return {[words](std::string const& text) {
                if (std::ranges::find(words, text) != words.end()) return std::string();
                return fmt::format("it is one of {}, not '{}'", fmt::join(words, ", "), text);
            },
            fmt::format("{{{}}}", fmt::join(words, ","))};
}
template <class E>
[[nodiscard]] CLI::Validator one_of() {
    std::vector<std::string> words;
    for (auto const& [value, text] : enum_names<E>) words.emplace_back(text);
    return one_of(words);
}
[[nodiscard]] inline CLI::Validator on_or_off() {
    return one_of({"on", "off"});
}

}  // namespace vfmgr
