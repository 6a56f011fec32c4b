// SPDX-License-Identifier: Apache-2.0
// Text for people and terminals. Pure; any thread.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "api/types/problem.hpp"

namespace vfmgr {

// Strict scanning of short texts, for the parse() functions of the value types. No ownership; any
// thread.

// Accepts only digits of `base`, at least `digits_min` and at most `digits_max` of them, up to
// `max`. No sign, space or prefix: stoi and strtoul accept all three.
struct DigitRules {
    int base = 10;
    std::size_t digits_min = 1;
    std::size_t digits_max = 20;
    std::uint64_t max = UINT64_MAX;
};

[[nodiscard]] inline std::optional<std::uint64_t> parse_digits(std::string_view text,
                                                               DigitRules const& rules) {
    if (text.size() < rules.digits_min || text.size() > rules.digits_max) return std::nullopt;
    if (text.empty() || text.front() == '-') return std::nullopt;
    std::uint64_t value = 0;
    auto const* const end = text.data() + text.size();
    auto const [stopped, error] = std::from_chars(text.data(), end, value, rules.base);
    if (error != std::errc{} || stopped != end || value > rules.max) return std::nullopt;
    return value;
}

struct DigitRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // included, not below the first
};
// Reads "7", or "3-9".
[[nodiscard]] inline std::optional<DigitRange> parse_digit_range(std::string_view text,
                                                                 DigitRules const& rules) {
    auto const dash = text.find('-');
    auto const first = parse_digits(text.substr(0, dash), rules);
    auto const last =
        dash == std::string_view::npos ? first : parse_digits(text.substr(dash + 1), rules);
    if (!first || !last || *first > *last) return std::nullopt;
    return DigitRange{*first, *last};
}

// Whether a name has 1 to `bytes_max` bytes: letters, digits and those of `others`, the first of
// them a letter or a digit.
[[nodiscard]] inline bool is_plain_name(std::string_view name, std::string_view others,
                                        std::size_t bytes_max) {
    auto const plain = [](char one) {
        return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
               (one >= '0' && one <= '9');
    };
    return !name.empty() && name.size() <= bytes_max && plain(name.front()) &&
           std::ranges::all_of(name, [&](char one) {
               return plain(one) || others.find(one) != std::string_view::npos;
           });
}

// Whether `text` is so many digits, letters in lower case.
[[nodiscard]] bool is_hex(std::string_view text, std::size_t digits);
// Whether `text` is a UUID in lower case, as libvirt writes them.
[[nodiscard]] bool is_uuid(std::string_view text);

// Returns "0a:1b:2c". Hand-written: a journal of a thousand VFs has some thousand of these, and fmt
// takes fourteen times as many instructions for one (callgrind).
[[nodiscard]] inline std::string colon_hex(std::span<std::uint8_t const> octets) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(octets.empty() ? 0 : octets.size() * 3 - 1, ':');
    for (std::size_t i = 0; i < octets.size(); ++i) {
        text[i * 3] = digits[octets[i] >> 4U];
        text[i * 3 + 1] = digits[octets[i] & 0xfU];
    }
    return text;
}

// Returns the text up to `separator` and removes both from `rest`; nullopt without a separator.
[[nodiscard]] inline std::optional<std::string_view> take_until(std::string_view& rest,
                                                                char separator) {
    auto const at = rest.find(separator);
    if (at == std::string_view::npos) return std::nullopt;
    auto const head = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    return head;
}

// For error details: control characters and quotes of a user's text become '?', cut at 80 bytes.
// An object, because a std::string would make a call of a function mean std::quoted(), wherever
// <iomanip> is included.
inline constexpr auto quoted = [](std::string_view text) {
    constexpr std::size_t bytes_max = 80;
    std::string out = "'";
    for (char const byte : text.substr(0, bytes_max)) {
        auto const code = static_cast<unsigned char>(byte);
        out += code < 0x20 || code >= 0x7f || byte == '\'' ? '?' : byte;
    }
    return out + (text.size() > bytes_max ? "…'" : "'");
};

// Writes untrusted text to a terminal safely: names from guests, libvirt and the kernel must
// neither control it nor change the direction of the text around them. Pure except flush_output();
// any thread.

enum class Shown {
    word,  // newlines and tabs are escaped too
    text,  // newlines and tabs stay
    json,  // escaped as in JSON strings, so the document keeps its meaning
    yaml,  // the same, as in YAML's double quotes
};

// Escapes controls (C0, DEL, C1), line separators and bidirectional controls, as "\x1b" or
// "\u202e", and bytes that are not UTF-8, as "\x9b".
[[nodiscard]] std::string escaped(std::string_view text, Shown as);

[[nodiscard]] bool valid_utf8(std::string_view text);

// Counts code points, as JSON Schema's maxLength does.
[[nodiscard]] std::size_t characters_in(std::string_view utf8);

// Returns a hash that is the same on every build and machine, which std::hash is not: FNV-1a, 64
// bits. It is not strong: who chooses the text can make two with the same hash.
[[nodiscard]] std::uint64_t stable_hash(std::string_view text);

// Fails if any write to standard output has failed.
[[nodiscard]] Result<void> flush_output();

}  // namespace vfmgr
