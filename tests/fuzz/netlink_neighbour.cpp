// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWNEIGH.
#include <cstdlib>

#include "vfmgr/netlink/ip.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const neighbour = vfmgr::parse_neighbour(std::as_bytes(std::span(data, size)));
    if (neighbour) static_cast<void>(vfmgr::permanent(*neighbour));
    return 0;
}
