// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/pause.hpp"

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>

namespace vfmgr {

NlRequest family_request(std::string_view name) {
    NlRequest request(GENL_ID_CTRL, 0);
    request.header(genlmsghdr{CTRL_CMD_GETFAMILY, 1, 0}).put_text(CTRL_ATTR_FAMILY_NAME, name);
    return request;
}

NlRequest pause_request(std::uint16_t family, std::string_view ifname) {
    NlRequest request(family, 0);
    request.header(genlmsghdr{ETHTOOL_MSG_PAUSE_GET, ETHTOOL_GENL_VERSION, 0});
    // Unlike those of rtnetlink for VFs, this nest is refused without its flag.
    request.nest(ETHTOOL_A_PAUSE_HEADER | NLA_F_NESTED,
                 [&](NlRequest& header) { header.put_text(ETHTOOL_A_HEADER_DEV_NAME, ifname); });
    return request;
}

std::optional<Pause> parse_pause(ByteView payload) {
    Attributes const attributes(after(payload, sizeof(genlmsghdr)));
    auto ifname = attributes.nested(ETHTOOL_A_PAUSE_HEADER).text(ETHTOOL_A_HEADER_DEV_NAME);
    if (!ifname || ifname->empty()) return std::nullopt;
    return Pause{std::move(*ifname),
                 attributes.value<std::uint8_t>(ETHTOOL_A_PAUSE_RX).value_or(0) != 0,
                 attributes.value<std::uint8_t>(ETHTOOL_A_PAUSE_TX).value_or(0) != 0};
}

}  // namespace vfmgr
