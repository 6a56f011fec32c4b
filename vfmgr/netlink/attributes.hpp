// SPDX-License-Identifier: Apache-2.0
// Reads netlink attributes from an answer without trusting any length. Views into bytes that the
// caller owns and that must outlive them; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "api/types/ip_address.hpp"
#include "api/types/mac_address.hpp"

namespace vfmgr {

using ByteView = std::span<std::byte const>;

// Returns the object at the front of `bytes`; nothing when there are too few. Copies it: netlink
// aligns to four bytes only.
template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::optional<T> front_object(ByteView bytes) {
    if (bytes.size() < sizeof(T)) return std::nullopt;
    T object;
    std::memcpy(&object, bytes.data(), sizeof(T));
    return object;
}

// Skips a header of `size` bytes, aligned to four as netlink does; empty when too short.
[[nodiscard]] ByteView after(ByteView bytes, std::size_t size);

template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] ByteView bytes_of(T const& object) {
    return std::as_bytes(std::span<T const, 1>(&object, 1));
}

// Converts network to host order and back.
[[nodiscard]] constexpr std::uint16_t big_endian(std::uint16_t value) {
    if constexpr (std::endian::native == std::endian::big) return value;
    return static_cast<std::uint16_t>((value << 8U) | (value >> 8U));
}

// Four octets are IPv4, sixteen IPv6.
[[nodiscard]] std::optional<IpAddress> ip_address_in(ByteView octets);
// AF_INET or AF_INET6.
[[nodiscard]] std::uint8_t family_of(IpAddress const& address);

struct Attribute {
    std::uint16_t type = 0;  // without the flags in the top two bits
    ByteView value;
};

class Attributes {
  public:
    // Stops at the first attribute with an impossible length; keeps those before it.
    explicit Attributes(ByteView payload);

    [[nodiscard]] std::vector<Attribute> const& all() const& { return attributes_; }
    std::vector<Attribute> const& all() const&& = delete;  // a loop over a temporary's would dangle
    [[nodiscard]] std::optional<ByteView> find(std::uint16_t type) const;
    // Absent when missing or shorter than a T.
    template <class T>
    [[nodiscard]] std::optional<T> value(std::uint16_t type) const {
        auto const bytes = find(type);
        return bytes ? front_object<T>(*bytes) : std::nullopt;
    }
    // Returns the text up to the first NUL or the attribute's end.
    [[nodiscard]] std::optional<std::string> text(std::uint16_t type) const;
    // Empty when missing.
    [[nodiscard]] Attributes nested(std::uint16_t type) const;
    // Needs exactly six octets: an IPoIB address has twenty and is no MAC.
    [[nodiscard]] std::optional<MacAddress> mac(std::uint16_t type) const;
    [[nodiscard]] std::optional<IpAddress> ip(std::uint16_t type) const;

  private:
    std::vector<Attribute> attributes_;
};

}  // namespace vfmgr
