// SPDX-License-Identifier: Apache-2.0
#include "api/types/mac_address.hpp"

#include <fmt/format.h>

#include "api/types/text.hpp"

namespace vfmgr {

namespace {

std::optional<MacAddress> parse_octets(std::string_view text) {
    constexpr std::size_t length = 17;  // "xx:xx:xx:xx:xx:xx"
    if (text.size() != length) return std::nullopt;
    char const separator = text[2];
    if (separator != ':' && separator != '-') return std::nullopt;
    MacAddress mac;
    for (std::size_t i = 0; i < mac.octets.size(); ++i) {
        auto const octet =
            parse_digits(text.substr(i * 3, 2), {.base = 16, .digits_min = 2, .digits_max = 2});
        if (!octet || (i > 0 && text[i * 3 - 1] != separator)) return std::nullopt;
        mac.octets[i] = static_cast<std::uint8_t>(*octet);
    }
    return mac;
}

}  // namespace

Result<MacAddress> MacAddress::parse(std::string_view text) {
    if (auto const mac = parse_octets(text)) return *mac;
    return fail(Problem::invalid_request,
                fmt::format("{} is not a MAC address such as 02:1a:4b:00:00:01", quoted(text)),
                "give six octets of two hexadecimal digits with ':' between them");
}

std::string to_string(MacAddress const& mac) {
    return colon_hex(mac.octets);
}

}  // namespace vfmgr
