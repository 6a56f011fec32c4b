// SPDX-License-Identifier: Apache-2.0
#include "api/types/ip_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr {

namespace {

using Octets = std::array<std::uint8_t, 16>;

std::size_t octet_count(IpAddress const& address) {
    return address.bits() / 8;
}

// Returns octet `at` of a netmask of `length` bits.
std::uint8_t mask_octet(unsigned length, std::size_t at) {
    auto const bits = std::clamp(static_cast<int>(length) - static_cast<int>(at) * 8, 0, 8);
    return static_cast<std::uint8_t>(0xff00U >> bits);
}

IpAddress masked(IpAddress address, unsigned length) {
    for (std::size_t i = 0; i < octet_count(address); ++i)
        address.octets[i] = static_cast<std::uint8_t>(address.octets[i] & mask_octet(length, i));
    return address;
}

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) {
    // inet_pton takes a C string: a NUL inside would hide the rest of the text.
    if (text.size() < INET6_ADDRSTRLEN && text.find('\0') == std::string_view::npos) {
        std::string const terminated(text);
        IpAddress address;
        if (inet_pton(AF_INET, terminated.c_str(), address.octets.data()) == 1) return address;
        address = {Family::v6, {}};
        if (inet_pton(AF_INET6, terminated.c_str(), address.octets.data()) == 1) return address;
    }
    return fail(Problem::invalid_request,
                fmt::format("{} is not an IP address such as 192.168.100.2", quoted(text)),
                "give an IPv4 or IPv6 address without a prefix length or zone");
}

Octets IpAddress::gid() const {
    if (family == Family::v6) return octets;
    Octets mapped{};
    mapped[10] = mapped[11] = 0xff;
    std::copy_n(octets.begin(), 4, mapped.begin() + 12);
    return mapped;
}

std::string to_string(IpAddress const& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    int const family = address.family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
    inet_ntop(family, address.octets.data(), text.data(), text.size());
    return text.data();
}

Result<IpPrefix> IpPrefix::parse(std::string_view text) {
    auto const not_a_prefix = [&](std::string const& why, std::string remedy) {
        return fail(Problem::invalid_request, fmt::format("{} {}", quoted(text), why),
                    std::move(remedy));
    };
    std::string_view length_text = text;
    auto const address_text = take_until(length_text, '/');
    if (!address_text) return not_a_prefix("has no prefix length", "add one, such as /24");
    auto const address = IpAddress::parse(*address_text);
    if (!address)
        return not_a_prefix("is not a prefix such as 192.168.100.0/24", address.error().remedy);
    auto const length = parse_digits(length_text, {.digits_max = 3, .max = address->bits()});
    if (!length || (length_text.size() > 1 && length_text.front() == '0'))
        return not_a_prefix(fmt::format("has no prefix length from 0 to {}", address->bits()),
                            "give the number of network bits, such as /24");
    IpPrefix const prefix{masked(*address, static_cast<unsigned>(*length)),
                          static_cast<std::uint8_t>(*length)};
    if (prefix.address != *address)
        return not_a_prefix("has bits set beyond its length",
                            fmt::format("write {}", to_string(prefix)));
    return prefix;
}

IpPrefix network_of(IpAddress const& address, std::uint8_t length) {
    return {masked(address, length), length};
}

bool IpPrefix::contains(IpAddress const& other) const {
    return other.family == address.family && masked(other, length) == address;
}

bool IpPrefix::overlaps(IpPrefix const& other) const {
    return length <= other.length ? contains(other.address) : other.contains(address);
}

std::optional<IpAddress> IpPrefix::host(std::uint64_t n) const {
    IpAddress result = address;
    for (std::size_t i = octet_count(address); i-- > 0 && n != 0; n >>= 8) {
        auto const octet = static_cast<std::uint8_t>(n & 0xff);
        if ((octet & mask_octet(length, i)) != 0) return std::nullopt;
        result.octets[i] = static_cast<std::uint8_t>(result.octets[i] | octet);
        if (i == 0 && n > 0xff) return std::nullopt;
    }
    return result;
}

std::optional<IpAddress> IpPrefix::broadcast() const {
    if (address.family != IpAddress::Family::v4 || length > 30) return std::nullopt;
    IpAddress result = address;
    for (std::size_t i = 0; i < 4; ++i)
        result.octets[i] =
            static_cast<std::uint8_t>(result.octets[i] | (0xff & ~mask_octet(length, i)));
    return result;
}

std::string to_string(IpPrefix const& prefix) {
    return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}

}  // namespace vfmgr
