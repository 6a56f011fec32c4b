// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/event_vector.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

constexpr char form = 'a';
constexpr std::size_t checksum_bytes = 4;
// A varint of 64 bits has 10 bytes, one of 32 bits 5.
constexpr std::size_t text_bytes_max = (vector_hosts_max * 15 + checksum_bytes) * 4 / 3 + 3;
constexpr std::string_view letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string base64url(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size() * 4 / 3 + 3);
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (char const byte : bytes) {
        bits = (bits << 8U) | static_cast<unsigned char>(byte);
        for (count += 8; count >= 6; count -= 6) text += letters[(bits >> (count - 6)) & 0x3fU];
    }
    if (count > 0) text += letters[(bits << (6 - count)) & 0x3fU];
    return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size() * 3 / 4);
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (char const letter : text) {
        auto const value = letters.find(letter);
        if (value == std::string_view::npos) return std::nullopt;
        bits = (bits << 6U) | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>((bits >> count) & 0xffU);
    }
    return bytes;
}

void append_varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) out += static_cast<char>(0x80U | (value & 0x7fU));
    out += static_cast<char>(value);
}

// Takes a varint from the front; nullopt: there is none, or it is greater than `max`.
std::optional<std::uint64_t> take_varint(std::string_view& bytes, std::uint64_t max) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
        auto const byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        auto const part = static_cast<std::uint64_t>(byte & 0x7fU);
        if ((part << shift) >> shift != part) return std::nullopt;
        value |= part << shift;
        if (byte < 0x80) return value <= max ? std::optional(value) : std::nullopt;
    }
    return std::nullopt;
}

std::string checksum_of(std::string_view bytes) {
    auto const hash = stable_hash(bytes);
    std::string checksum;
    for (unsigned i = 0; i < checksum_bytes; ++i)
        checksum += static_cast<char>(((hash ^ (hash >> 32U)) >> (8 * i)) & 0xffU);
    return checksum;
}

auto place_of(std::vector<std::pair<std::uint32_t, std::uint64_t>>& places, std::uint32_t host) {
    return std::ranges::lower_bound(places, host, {},
                                    &std::pair<std::uint32_t, std::uint64_t>::first);
}

}  // namespace

Result<EventVector> EventVector::parse(std::string_view text) {
    auto const refuse = [&] {
        return fail(Problem::invalid_request,
                    fmt::format("{} is no id of the fleet's event stream", quoted(text)),
                    "send the last id that the stream had, or leave it out to begin now");
    };
    if (text.empty() || text.size() > text_bytes_max) return refuse();
    if (text.front() != form)
        return fail(Problem::invalid_request,
                    fmt::format("the id {} is of another version of vfmgr-fleetd", quoted(text)),
                    "leave it out to begin now, and list what you follow");
    auto const bytes = from_base64url(text.substr(1));
    if (!bytes || bytes->size() < checksum_bytes) return refuse();
    std::string_view rest(bytes->data(), bytes->size() - checksum_bytes);
    EventVector vector;
    for (std::uint64_t host = 0; !rest.empty();) {
        auto const step = take_varint(rest, UINT32_MAX);
        auto const number = take_varint(rest, UINT64_MAX);
        if (!step || !number || host + *step > UINT32_MAX) return refuse();
        if (vector.places_.size() == vector_hosts_max) return refuse();
        host += *step;
        vector.places_.emplace_back(static_cast<std::uint32_t>(host), *number);
    }
    // The checksum, and that each vector has one text: no number twice, no zeroes before a number.
    if (vector.text() != text) return refuse();
    for (std::size_t i = 1; i < vector.places_.size(); ++i)
        if (vector.places_[i].first == vector.places_[i - 1].first) return refuse();
    return vector;
}

std::string EventVector::text() const {
    std::string bytes;
    std::uint32_t before = 0;
    for (auto const& [host, number] : places_) {
        append_varint(bytes, host - before);
        append_varint(bytes, number);
        before = host;
    }
    bytes += checksum_of(bytes);
    return form + base64url(bytes);
}

std::optional<std::uint64_t> EventVector::at(std::uint32_t host) const {
    auto const found = std::ranges::lower_bound(places_, host, {},
                                                &std::pair<std::uint32_t, std::uint64_t>::first);
    if (found == places_.end() || found->first != host) return std::nullopt;
    return found->second;
}

void EventVector::put(std::uint32_t host, std::uint64_t number) {
    auto const found = place_of(places_, host);
    if (found != places_.end() && found->first == host)
        found->second = number;
    else
        places_.emplace(found, host, number);
}

void EventVector::erase(std::uint32_t host) {
    auto const found = place_of(places_, host);
    if (found != places_.end() && found->first == host) places_.erase(found);
}

}  // namespace vfmgr::fleet
