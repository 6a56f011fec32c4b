// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ARP packet: no crash, and a claim only where the packet has the sender's address.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "guest-tools/net/address_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const packet = std::as_bytes(std::span(data, size));
    auto const address = IpAddress::parse("192.168.100.10").value();
    auto const claim = guest::arp_claim(packet, address);
    if (!claim) return 0;
    bool const long_enough = size >= 28;
    if (!long_enough || !std::equal(data + 14, data + 18, address.octets.begin()) ||
        !std::equal(data + 8, data + 14, claim->octets.begin()))
        std::abort();
    return 0;
}
