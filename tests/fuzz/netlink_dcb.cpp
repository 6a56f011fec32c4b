// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of DCB_CMD_IEEE_GET and of ETHTOOL_MSG_PAUSE_GET_REPLY.
#include <algorithm>
#include <cstdlib>

#include "vfmgr/netlink/qos.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    auto const payload = std::as_bytes(std::span(data, size));
    if (auto const dcb = parse_dcb(payload)) {
        require(!dcb->ifname.empty());
        bool any_dscp = false;
        for (auto const& app : dcb->apps) {
            require(app.priority < dcb_priorities);
            any_dscp |= app.selector == dcb_selects_dscp;
        }
        require(trusts_dscp(*dcb) == any_dscp);
        require(priority_of_dscp(*dcb, 26) < dcb_priorities);
    }
    if (auto const pause = parse_pause(payload)) require(!pause->ifname.empty());
    return 0;
}
