// SPDX-License-Identifier: Apache-2.0
// Addresses, as iproute2 and lspci write them: of network interfaces, PCI functions, hosts. Values;
// any thread.
#include "api/types/addresses.hpp"

#include <arpa/inet.h>
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/json.hpp"
#include "api/types/json_text.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

// Parses `groups` groups of `digits` hexadecimal digits each, with `separator` between them.
std::optional<std::uint64_t> parse_groups(std::string_view text, std::size_t groups,
                                          std::size_t digits, char separator) {
    if (text.size() != groups * digits + groups - 1) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < groups; ++i) {
        auto const at = i * (digits + 1);
        auto const group = parse_digits(text.substr(at, digits),
                                        {.base = 16, .digits_min = digits, .digits_max = digits});
        if (!group || (i > 0 && text[at - 1] != separator)) return std::nullopt;
        value = value << (digits * 4) | *group;
    }
    return value;
}

template <std::size_t count>
std::array<std::uint8_t, count> octets_of(std::uint64_t value) {
    std::array<std::uint8_t, count> octets{};
    for (auto octet = octets.rbegin(); octet != octets.rend(); ++octet, value >>= 8U)
        *octet = static_cast<std::uint8_t>(value);
    return octets;
}

}  // namespace

Result<MacAddress> MacAddress::parse(std::string_view text) {
    for (char const separator : {':', '-'})
        if (auto const value = parse_groups(text, 6, 2, separator))
            return MacAddress{octets_of<6>(*value)};
    return fail(Problem::invalid_request,
                fmt::format("{} is not a MAC address such as 02:1a:4b:00:00:01", quoted(text)),
                "give six octets of two hexadecimal digits with ':' between them");
}

std::string to_string(MacAddress const& mac) {
    return colon_hex(mac.octets);
}

namespace {

std::optional<std::uint64_t> parse_value(std::string_view text) {
    if (text.starts_with("0x"))
        return parse_digits(text.substr(2), {.base = 16, .digits_min = 16, .digits_max = 16});
    if (auto const octets = parse_groups(text, 8, 2, ':')) return octets;
    return parse_groups(text, 4, 4, ':');
}

}  // namespace

Result<Guid> Guid::parse(std::string_view text) {
    if (auto const value = parse_value(text)) return Guid{*value};
    return fail(Problem::invalid_request,
                fmt::format("{} is not a GUID such as 24:8a:07:03:00:8d:ae:2e", quoted(text)),
                "give eight octets of two hexadecimal digits with ':' between them");
}

std::string to_string(Guid const& guid) {
    return colon_hex(octets_of<8>(guid.value));
}

template <class F, Of<Vlan> V>
void fields(F& f, V& vlan) {
    f.value("id", vlan.id);
    f.defaulted("qos", vlan.qos);
    f.defaulted("proto", vlan.proto);
}

void append_json(std::string& text, Vlan const& vlan) {
    JsonText writer(text);
    fields(writer, vlan);
}

void check(JsonReader& reader, Vlan const& vlan) {
    if (vlan.id > 4094) reader.complain("id", "must be from 0 to 4094; 0 means no tag");
    if (vlan.qos > 7) reader.complain("qos", "must be from 0 to 7");
}

template struct Json<Vlan>;

namespace {

std::optional<PciAddress> parse_function(std::string_view text) {
    std::uint64_t domain = 0;
    std::string_view rest = text;
    auto const first = take_until(rest, ':');
    if (!first) return std::nullopt;
    std::string_view bus_text = *first;
    if (auto const second = take_until(rest, ':')) {
        // A 32-bit domain behind VMD has five to eight digits, never padded beyond four.
        auto const parsed = parse_digits(*first, {.base = 16, .digits_min = 4, .digits_max = 8});
        if (!parsed) return std::nullopt;
        domain = *parsed;
        bus_text = *second;
    }
    auto const device_text = take_until(rest, '.');
    if (!device_text) return std::nullopt;
    auto const bus = parse_digits(bus_text, {.base = 16, .digits_min = 2, .digits_max = 2});
    auto const device =
        parse_digits(*device_text, {.base = 16, .digits_min = 2, .digits_max = 2, .max = 31});
    auto const function = parse_digits(rest, {.base = 8, .digits_min = 1, .digits_max = 1});
    if (!bus || !device || !function) return std::nullopt;
    return PciAddress{static_cast<std::uint32_t>(domain), static_cast<std::uint8_t>(*bus),
                      static_cast<std::uint8_t>(*device), static_cast<std::uint8_t>(*function)};
}

}  // namespace

template <class F, Of<VfId> V>
void fields(F& f, V& vf) {
    f.value("pf", vf.pf);
    f.value("index", vf.index);
}

Result<PciAddress> PciAddress::parse(std::string_view text) {
    if (auto const address = parse_function(text)) return *address;
    return fail(Problem::invalid_request,
                fmt::format("{} is not a PCI address such as 0000:3b:00.2", quoted(text)),
                "give domain:bus:device.function in hexadecimal, as lspci -D prints it");
}

std::string to_string(PciAddress const& address) {
    // One observation of a thousand VFs formats some ten thousand of these.
    return fmt::format(FMT_COMPILE("{:04x}:{:02x}:{:02x}.{:x}"), address.domain, address.bus,
                       address.device, address.function);
}

std::string to_string(VfId const& vf) {
    return fmt::format("{}/{}", to_string(vf.pf), vf.index);
}

template struct Json<VfId>;

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

std::optional<IpAddress> IpAddress::next() const {
    IpAddress result = *this;
    for (std::size_t i = octet_count(*this); i-- > 0;)
        if (++result.octets[i] != 0) return result;
    return std::nullopt;
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

IpAddress IpPrefix::last() const {
    IpAddress result = address;
    for (std::size_t i = 0; i < octet_count(address); ++i)
        result.octets[i] =
            static_cast<std::uint8_t>(result.octets[i] | (0xff & ~mask_octet(length, i)));
    return result;
}

std::optional<IpAddress> IpPrefix::broadcast() const {
    if (address.family != IpAddress::Family::v4 || length > 30) return std::nullopt;
    return last();
}

std::string to_string(IpPrefix const& prefix) {
    return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}

namespace {

constexpr std::size_t host_bytes_max = 253;  // RFC 1035, 2.3.4

}  // namespace

bool valid_host(std::string_view host) {
    auto const fits = [](char ch) {
        return ch > ' ' && ch <= '~' &&
               std::string_view("/?#@[]").find(ch) == std::string_view::npos;
    };
    return !host.empty() && host.size() <= host_bytes_max && std::ranges::all_of(host, fits);
}

std::optional<HostPort> parse_host_port(std::string_view text, std::uint16_t default_port) {
    HostPort out{{}, default_port};
    bool const bracketed = text.starts_with('[');
    auto const end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == std::string_view::npos) return std::nullopt;
    out.host = text.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
    auto const rest = text.substr(bracketed ? end + 1 : end);
    if (!valid_host(out.host)) return std::nullopt;
    if (rest.empty()) return out;
    auto const port = parse_digits(rest.substr(1), {.digits_max = 5, .max = 65535});
    if (rest.front() != ':' || port.value_or(0) == 0) return std::nullopt;
    out.port = static_cast<std::uint16_t>(*port);
    return out;
}

std::optional<HostPort> parse_https_url(std::string_view url, std::uint16_t default_port) {
    constexpr std::string_view scheme = "https://";
    if (!url.starts_with(scheme)) return std::nullopt;
    return parse_host_port(url.substr(scheme.size()), default_port);
}

std::string to_string(HostPort const& place) {
    bool const v6 = place.host.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", place.host, place.port)
              : fmt::format("{}:{}", place.host, place.port);
}

}  // namespace vfmgr
