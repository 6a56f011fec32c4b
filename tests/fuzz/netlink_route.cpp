// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWROUTE: a parsed prefix length fits the address.
#include <cstdlib>

#include "vfmgr/netlink/ip.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const route = vfmgr::parse_route(std::as_bytes(std::span(data, size)));
    if (route && route->prefix.length > route->prefix.address.bits()) std::abort();
    return 0;
}
