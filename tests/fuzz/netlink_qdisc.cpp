// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWQDISC.
#include <cstdlib>

#include "vfmgr/netlink/qos.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const qdisc = vfmgr::parse_qdisc(std::as_bytes(std::span(data, size)));
    if (qdisc && qdisc->kind.empty()) std::abort();
    return 0;
}
