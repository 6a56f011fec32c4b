// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWLINK: a parsed device has a name and a number.
#include <cstdlib>

#include "vfmgr/netlink/link.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const netdev = vfmgr::parse_netdev(std::as_bytes(std::span(data, size)));
    if (netdev && (netdev->name.empty() || netdev->ifindex <= 0)) std::abort();
    return 0;
}
