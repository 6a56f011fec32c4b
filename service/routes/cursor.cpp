// SPDX-License-Identifier: Apache-2.0
#include "service/routes/cursor.hpp"

#include <fmt/format.h>

#include <limits>

#include "api/types/text.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

// A cursor is this letter, the checksum, and the key in hexadecimal.
constexpr char form = 'a';
constexpr std::size_t checksum_digits = 16;
constexpr std::size_t key_bytes_max = 256;

constexpr auto begin_again = "leave out cursor: the list then begins again";

std::string checksum_of(std::string_view list, std::string_view key) {
    auto const text = fmt::format("{}\n{}\n{}", form, list, key);
    return verify::digest_hex(text).substr(0, checksum_digits);
}

std::string hex_of(std::string_view bytes) {
    std::string digits;
    for (char const byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return digits;
}

std::optional<std::string> bytes_of(std::string_view hex) {
    std::string bytes;
    for (std::size_t at = 0; at < hex.size(); at += 2) {
        auto const byte = parse_digits(hex.substr(at, 2), {16, 2, 2, 255});
        if (!byte) return std::nullopt;
        bytes += static_cast<char>(*byte);
    }
    return bytes;
}

std::optional<std::int64_t> number_in(std::string_view text) {
    auto const number = parse_digits(text, {.max = std::numeric_limits<std::int64_t>::max()});
    if (!number) return std::nullopt;
    return static_cast<std::int64_t>(*number);
}

}  // namespace

std::string make_cursor(std::string_view list, std::string_view key) {
    return form + checksum_of(list, key) + hex_of(key);
}

Error not_a_cursor(std::string_view text) {
    return {Problem::invalid_request, fmt::format("{} is not a cursor of this API", quoted(text)),
            "send the `next` of the page before, as it is; or leave out cursor to begin again"};
}

Result<std::string> key_in(std::string_view cursor, std::string_view list) {
    bool const letters =
        cursor.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
    if (!letters || cursor.size() < 1 + checksum_digits ||
        cursor.size() > 1 + checksum_digits + 2 * key_bytes_max)
        return fail(not_a_cursor(cursor));
    if (cursor.front() != form)
        return fail(Problem::invalid_request,
                    fmt::format("the cursor {} is of another version of vfmgr", quoted(cursor)),
                    begin_again);
    auto const key = bytes_of(cursor.substr(1 + checksum_digits));
    if (!key) return fail(not_a_cursor(cursor));
    if (make_cursor(list, *key) != cursor)
        return fail(Problem::invalid_request,
                    fmt::format("the cursor {} is of another list than {}, or was changed",
                                quoted(cursor), quoted(list)),
                    "send it with the path and the filters of the page that it came with; or leave "
                    "out cursor to begin again");
    return *key;
}

std::string key_text(PciAddress const& pci) {
    return to_string(pci);
}

std::string key_text(VfId const& vf) {
    return to_string(vf);
}

std::string key_text(RowPlace const& place) {
    return fmt::format("{}/{}", place.at_ms, place.number);
}

std::string key_text(CreatedAndId const& key) {
    return fmt::format("{}/{}", key.first, key.second);
}

template <>
std::optional<std::string> parse_key(std::string_view text) {
    return std::string(text);
}

template <>
std::optional<PciAddress> parse_key(std::string_view text) {
    auto const pci = PciAddress::parse(text);
    return pci ? std::optional(*pci) : std::nullopt;
}

template <>
std::optional<VfId> parse_key(std::string_view text) {
    auto const pf = parse_key<PciAddress>(take_until(text, '/').value_or(""));
    auto const index = parse_digits(text, {.max = std::numeric_limits<std::uint16_t>::max()});
    if (!pf || !index) return std::nullopt;
    return VfId{*pf, static_cast<std::uint16_t>(*index)};
}

template <>
std::optional<RowPlace> parse_key(std::string_view text) {
    auto const at_ms = number_in(take_until(text, '/').value_or(""));
    auto const number = number_in(text);
    if (!at_ms || !number) return std::nullopt;
    return RowPlace{*at_ms, *number};
}

template <>
std::optional<CreatedAndId> parse_key(std::string_view text) {
    auto const created = number_in(take_until(text, '/').value_or(""));
    if (!created) return std::nullopt;
    return CreatedAndId{*created, std::string(text)};
}

}  // namespace vfmgr
