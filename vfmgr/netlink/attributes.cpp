// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/attributes.hpp"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>

namespace vfmgr {
namespace {

constexpr std::size_t header_bytes = 4;
constexpr std::uint16_t type_mask = 0x3fff;  // NLA_TYPE_MASK without its C cast

std::size_t aligned(std::size_t size) {
    return (size + 3) & ~std::size_t{3};
}

}  // namespace

std::optional<IpAddress> ip_address_in(ByteView octets) {
    if (octets.size() != 4 && octets.size() != 16) return std::nullopt;
    IpAddress address;
    address.family = octets.size() == 4 ? IpAddress::Family::v4 : IpAddress::Family::v6;
    std::memcpy(address.octets.data(), octets.data(), octets.size());
    return address;
}

std::uint8_t family_of(IpAddress const& address) {
    return address.family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
}

ByteView after(ByteView bytes, std::size_t size) {
    auto const start = aligned(size);
    return bytes.size() < start ? ByteView{} : bytes.subspan(start);
}

Attributes::Attributes(ByteView payload) {
    while (auto const header = front_object<nlattr>(payload)) {
        if (header->nla_len < header_bytes || header->nla_len > payload.size()) return;
        attributes_.push_back({static_cast<std::uint16_t>(header->nla_type & type_mask),
                               payload.subspan(header_bytes, header->nla_len - header_bytes)});
        payload = payload.subspan(std::min(payload.size(), aligned(header->nla_len)));
    }
}

std::optional<ByteView> Attributes::find(std::uint16_t type) const {
    for (auto const& attribute : attributes_)
        if (attribute.type == type) return attribute.value;
    return std::nullopt;
}

std::optional<std::string> Attributes::text(std::uint16_t type) const {
    auto const bytes = find(type);
    if (!bytes) return std::nullopt;
    std::string text;
    for (auto const byte : *bytes) {
        if (byte == std::byte{0}) break;
        text += static_cast<char>(byte);
    }
    return text;
}

Attributes Attributes::nested(std::uint16_t type) const {
    return Attributes(find(type).value_or(ByteView{}));
}

std::optional<MacAddress> Attributes::mac(std::uint16_t type) const {
    auto const bytes = find(type);
    if (!bytes || bytes->size() != sizeof(MacAddress::octets)) return std::nullopt;
    MacAddress mac;
    std::memcpy(mac.octets.data(), bytes->data(), bytes->size());
    return mac;
}

std::optional<IpAddress> Attributes::ip(std::uint16_t type) const {
    auto const bytes = find(type);
    return bytes ? ip_address_in(*bytes) : std::nullopt;
}

}  // namespace vfmgr
