// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/identity.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr::fleet {
namespace {

constexpr std::size_t low_octets = 8;

// The octets before the last 64 bits, and those that hold them.
template <class Octets>
std::uint64_t number_in(Octets const& octets, std::size_t begin, std::size_t end) {
    std::uint64_t number = 0;
    for (auto i = begin; i < end; ++i) number = number << 8U | octets[i];
    return number;
}
template <class Octets>
void write_number(Octets& octets, std::size_t begin, std::size_t end, std::uint64_t number) {
    for (auto i = end; i > begin; --i, number >>= 8U)
        octets[i - 1] = static_cast<std::uint8_t>(number);
}

struct Bounds {
    std::size_t begin = 0;
    std::size_t end = 0;
};
Bounds low_part(IpAddress const& address) {
    std::size_t const size = address.bits() / 8;
    return {size > low_octets ? size - low_octets : 0, size};
}

std::string key_in(std::string_view folder, Identity const& identity) {
    switch (kind_of(identity)) {
        case IdentityKind::mac:
            return fmt::format("{}/mac/{}", folder, to_string(identity));
        case IdentityKind::guid:
            return fmt::format("{}/guid/{}", folder, to_string(identity));
        case IdentityKind::address:
            break;
    }
    return fmt::format("{}/address/{}/{}", folder, identity.network, to_string(identity));
}

}  // namespace

IdentityKind kind_of(Identity const& identity) {
    return static_cast<IdentityKind>(identity.value.index());
}

std::string to_string(Identity const& identity) {
    return std::visit([](auto const& value) { return vfmgr::to_string(value); }, identity.value);
}

std::string described(Identity const& identity) {
    switch (kind_of(identity)) {
        case IdentityKind::mac:
            return "MAC " + to_string(identity);
        case IdentityKind::guid:
            return "GUID " + to_string(identity);
        case IdentityKind::address:
            break;
    }
    return fmt::format("address {} of network {}", to_string(identity), identity.network);
}

std::uint64_t low_bits(Identity const& identity) {
    if (auto const* const mac = std::get_if<MacAddress>(&identity.value))
        return number_in(mac->octets, 0, mac->octets.size());
    if (auto const* const guid = std::get_if<Guid>(&identity.value)) return guid->value;
    auto const& address = std::get<IpAddress>(identity.value);
    auto const [begin, end] = low_part(address);
    return number_in(address.octets, begin, end);
}

Identity with_low_bits(Identity identity, std::uint64_t low) {
    if (auto* const mac = std::get_if<MacAddress>(&identity.value)) {
        write_number(mac->octets, 0, mac->octets.size(), low);
    } else if (auto* const guid = std::get_if<Guid>(&identity.value)) {
        guid->value = low;
    } else {
        auto& address = std::get<IpAddress>(identity.value);
        auto const [begin, end] = low_part(address);
        write_number(address.octets, begin, end, low);
    }
    return identity;
}

bool comparable(Identity const& one, Identity const& other) {
    if (one.value.index() != other.value.index() || one.network != other.network) return false;
    auto const* const address = std::get_if<IpAddress>(&one.value);
    if (!address) return true;
    auto const& second = std::get<IpAddress>(other.value);
    if (address->family != second.family) return false;
    auto const begin = static_cast<std::ptrdiff_t>(low_part(*address).begin);
    return std::equal(address->octets.begin(), address->octets.begin() + begin,
                      second.octets.begin());
}

std::string block_key(Identity const& first) {
    return key_in("blocks", first);
}

std::string claim_key(Identity const& identity) {
    return key_in("claims", identity);
}

Snapshot::KeptBlock const* block_of(Snapshot const& fleet, Identity const& identity) {
    auto const found = std::ranges::find_if(
        fleet.blocks, [&](auto const& each) { return each.block.contains(identity); });
    return found == fleet.blocks.end() ? nullptr : &*found;
}

Snapshot::KeptClaim const* claim_of(Snapshot const& fleet, Identity const& identity) {
    auto const found = std::ranges::find_if(
        fleet.claims, [&](auto const& each) { return each.claim.identity == identity; });
    return found == fleet.claims.end() ? nullptr : &*found;
}

}  // namespace vfmgr::fleet
