// SPDX-License-Identifier: Apache-2.0
// Parses values of options: one of an enum's names, a number. Pure.
#pragma once

#include <fmt/format.h>

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

}  // namespace vfmgr
