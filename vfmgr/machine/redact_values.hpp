// SPDX-License-Identifier: Apache-2.0
// Finds names in text, and the ends of their values. For redact.cpp only. Pure; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "vfmgr/machine/redact.hpp"

namespace vfmgr::checks {

struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool below = false;  // a YAML block in the lines below its name
};

// A set of characters with a fast lookup, because texts are long and searched several times.
class Letters {
  public:
    constexpr explicit Letters(std::string_view all) {
        for (char const c : all) has_[static_cast<unsigned char>(c)] = true;
    }
    [[nodiscard]] constexpr bool has(char c) const { return has_[static_cast<unsigned char>(c)]; }
    [[nodiscard]] std::size_t first(std::string_view text, std::size_t at) const {
        while (at < text.size() && !has(text[at])) ++at;
        return std::min(at, text.size());
    }
    [[nodiscard]] std::size_t behind(std::string_view text, std::size_t at) const {
        while (at < text.size() && has(text[at])) ++at;
        return std::min(at, text.size());
    }

  private:
    std::array<bool, 256> has_{};
};

// Replaces a secret.
inline constexpr std::string_view removed = "(removed)";
// A line ends with a newline, or with a NUL as in /proc/*/environ.
inline constexpr std::string_view line_ends{"\n\0", 2};
inline constexpr Letters name_letters{
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"};

[[nodiscard]] std::size_t end_of_line(std::string_view text, std::size_t at);
// Returns the next word from `at` on that can be a name.
[[nodiscard]] std::optional<Span> next_name(std::string_view text, std::size_t at);
// Returns the value that follows a name of that secrecy, or nullopt if none does.
[[nodiscard]] std::optional<Span> value_of(std::string_view text, Span const& name,
                                           Secrecy secrecy);

}  // namespace vfmgr::checks
