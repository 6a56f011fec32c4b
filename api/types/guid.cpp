// SPDX-License-Identifier: Apache-2.0
#include "api/types/guid.hpp"

#include <fmt/format.h>

#include <array>

#include "api/types/text.hpp"

namespace vfmgr {

namespace {

// Parses `groups` groups of `digits` hexadecimal digits each, separated by ':'.
std::optional<std::uint64_t> parse_groups(std::string_view text, std::size_t groups,
                                          std::size_t digits) {
    if (text.size() != groups * digits + groups - 1) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < groups; ++i) {
        auto const at = i * (digits + 1);
        auto const group = parse_digits(text.substr(at, digits),
                                        {.base = 16, .digits_min = digits, .digits_max = digits});
        if (!group || (i > 0 && text[at - 1] != ':')) return std::nullopt;
        value = value << (digits * 4) | *group;
    }
    return value;
}

std::optional<std::uint64_t> parse_value(std::string_view text) {
    if (text.starts_with("0x"))
        return parse_digits(text.substr(2), {.base = 16, .digits_min = 16, .digits_max = 16});
    if (auto const octets = parse_groups(text, 8, 2)) return octets;
    return parse_groups(text, 4, 4);
}

}  // namespace

Result<Guid> Guid::parse(std::string_view text) {
    if (auto const value = parse_value(text)) return Guid{*value};
    return fail(Problem::invalid_request,
                fmt::format("{} is not a GUID such as 24:8a:07:03:00:8d:ae:2e", quoted(text)),
                "give eight octets of two hexadecimal digits with ':' between them");
}

std::string to_string(Guid const& guid) {
    std::array<std::uint8_t, 8> octets{};
    for (std::size_t i = 0; i < octets.size(); ++i)
        octets[i] = static_cast<std::uint8_t>(guid.value >> (56 - i * 8));
    return colon_hex(octets);
}

}  // namespace vfmgr
