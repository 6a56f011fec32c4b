// SPDX-License-Identifier: Apache-2.0
// Any bytes as a datagram from the kernel: in no case is an error a negative errno.
#include <cstdlib>

#include "vfmgr/netlink/socket.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    for (auto const& answer : vfmgr::split_messages(std::as_bytes(std::span(data, size))))
        if (vfmgr::parse_ack(answer).error < 0) std::abort();
    return 0;
}
