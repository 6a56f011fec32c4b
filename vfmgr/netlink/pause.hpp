// SPDX-License-Identifier: Apache-2.0
// Flow control of a whole network device (802.3x PAUSE), as ethtool -a shows it. Free functions;
// any thread.
#pragma once

#include "vfmgr/netlink/nl_request.hpp"

namespace vfmgr {

struct Pause {
    std::string ifname;
    bool receives = false;  // stops when its peer asks
    bool sends = false;     // asks its peer to stop
    bool operator==(Pause const&) const = default;
};

// `family` is ethtool's number on this kernel: parse_family() of devlink.hpp reads it from the
// answer to family_request().
[[nodiscard]] NlRequest family_request(std::string_view name);
[[nodiscard]] NlRequest pause_request(std::uint16_t family, std::string_view ifname);
// Parses the payload of ETHTOOL_MSG_PAUSE_GET_REPLY; nothing without a device's name.
[[nodiscard]] std::optional<Pause> parse_pause(ByteView payload);

}  // namespace vfmgr
