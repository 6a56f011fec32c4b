// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of NFT_MSG_NEWSETELEM: a key is read as an interface and an address.
#include <cstdlib>

#include "vfmgr/netlink/packet_filter.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    for (auto const key : parse_set_elements(std::as_bytes(std::span(data, size)))) {
        auto const ifname = parse_ifname_key(key);
        if (ifname && ifname->size() > 16) std::abort();
        auto const address = parse_address_key(key);
        if (address && address->ifname != ifname) std::abort();
    }
    return 0;
}
